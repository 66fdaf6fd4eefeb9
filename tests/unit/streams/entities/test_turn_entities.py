"""Laws of names: whatever was said before, a name that is said again is found again, and nobody is mixed up."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.schemas.entities import MAX_ENTITIES, MAX_NAME, MAX_UNLINKED, SAME_AS, Alias, KnownEntity, NamedEntity
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.linker import entity_events, unlinked_names
from mnemolog.streams.entities.links import FactLinks, TurnEntities
from mnemolog.streams.entities.resolver import MAX_NEW_ENTITIES, NameContext
from tests.support.builders.commits import added, commit
from tests.support.builders.entities import fact_naming, known_entity, relation, spoken_alias, tie_alias
from tests.support.harnesses.entity_talk import EntityTalk

FIRST = ("Ana", "Anna", "Tom", "Thomas", "Tommy", "Carl", "Carla", "Bob", "Robert", "ÁNA", "Li")
LAST = ("", " Keller", " Schmidt", " Maria Keller")
TIES = ("", "my brother ", "my wife ", "our dog ", "Alice's brother ", "Tom's wife ", "meine Frau ")
ORIGINS = ("", " from work", " from the gym")
NAMES = st.builds(
    lambda tie, first, last, origin: f"{tie}{first}{last}{origin if not tie else ''}",
    *(st.sampled_from(words) for words in (TIES, FIRST, LAST, ORIGINS)),
).filter(lambda name: not name.startswith(("Tom's wife Tom", "Tom's wife Thomas"))) | st.sampled_from(
    ["my wife", "my brother", "our dog", "Tom's wife", "Alice's brother"]
)
PROPER = st.builds("".join, st.tuples(st.sampled_from(FIRST), st.sampled_from(LAST)))
SIGNS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)
LONG_KEYS = st.sampled_from(["\ufdfa" * 20, " from ", "A"])  # the sign is 18 letters of a key
TEXTS = SIGNS | st.lists(LONG_KEYS, max_size=4).map("".join)
SPEAKERS = st.sampled_from(["Alice", "Bob Marsh", None])
SAID = st.lists(st.tuples(NAMES, SPEAKERS), max_size=8)
CONTEXT = NameContext(owner="default/alice", source_id="t1")


def talk_after(said: list[tuple[str, str | None]]) -> EntityTalk:
    talk = EntityTalk(user_names=("Alice",))
    for name, speaker in said:
        talk.say(name, speaker=speaker)
    return talk


@settings(max_examples=200)
@given(SAID, NAMES, SPEAKERS)
def test_a_name_that_is_said_again_is_found_again(
    said: list[tuple[str, str | None]], name: str, speaker: str | None
) -> None:
    talk = talk_after(said)
    first = [link.entity_id for link in talk.say(name, speaker=speaker)]
    known = len(talk.known)
    again = talk.say(name, speaker=speaker)
    assert [link.entity_id for link in again] == first
    assert len(talk.known) == known
    assert all(link.step != "new" for link in again)


def test_a_wife_of_her_husband_s_name_is_found_again() -> None:
    talk = talk_after([("Tom from work", "Alice")])
    first = [link.entity_id for link in talk.say("Tom's wife Tom")]
    assert [link.entity_id for link in talk.say("Tom's wife Tom")] == first


@settings(max_examples=200)
@given(SAID, PROPER, PROPER)
def test_two_names_of_one_that_are_told_again_change_nothing(
    said: list[tuple[str, str | None]], one: str, other: str
) -> None:
    talk = talk_after(said)
    same = relation(one, SAME_AS, other)
    both = fact_naming(one, other, text="They are one.", relations=(same,))
    first = talk.tell(both)
    known = dict(talk.known)
    again = talk.tell(both)
    assert talk.known == known
    assert [link.entity_id for link in again[0]] == [link.entity_id for link in first[0]]


@settings(max_examples=200)
@given(SAID)
def test_what_tells_two_apart_is_never_joined(said: list[tuple[str, str | None]]) -> None:
    talk = talk_after(said)
    for entity in talk.known.values():
        surnames = {
            alias.key.partition(" ")[2] for alias in entity.aliases if alias.kind == "name" and "(" not in alias.key
        }
        assert not {"keller", "schmidt"} <= surnames
        origins = {alias.key.partition(" (")[2] for alias in entity.aliases if " (" in alias.key}
        assert not (origins and entity.keys("tie"))
        assert len(origins) <= 1
        assert not {"carl", "carla"} <= entity.keys("name")


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["person", "place", "other"])), max_size=5))
def test_hostile_names_are_links_to_what_is_known_or_registered(names: list[tuple[str, str]]) -> None:
    talk = EntityTalk()
    entities = tuple(NamedEntity(name=name, type=kind) for name, kind in names if name)
    (links,) = talk.tell(fact_naming().model_copy(update={"entities": entities}))
    assert {link.entity_id for link in links} <= talk.known.keys()
    assert len({link.entity_id for link in links}) == len(links)


def test_a_source_adds_a_bounded_number_of_entities_and_reports_names_beyond() -> None:
    names = ["she", *(f"N{number}" for number in range(MAX_NEW_ENTITIES + 1))]
    facts = [
        fact_naming(*names[at : at + MAX_ENTITIES], text=f"F{at}", kind="other")
        for at in range(0, len(names), MAX_ENTITIES)
    ]
    found = TurnEntities.of_facts(facts, [], CONTEXT)
    unlinked = unlinked_names(found, [])
    assert len(found.new) == MAX_NEW_ENTITIES
    assert (unlinked[0].name, unlinked[0].reason) == ("she", "no_name")
    assert [one.reason for one in unlinked[1:3]] == ["too_many"] * 2  # the user is one of a hundred
    assert [one.reason for one in unlinked[3:]] == ["no_new_fact"] * (MAX_UNLINKED - 3)


def test_a_name_whose_key_and_origin_are_much_longer_is_found_again() -> None:
    talk = EntityTalk()
    name = "A" + "\ufdfa" * 20 + " from " + "\ufdfa" * 20
    first = [link.entity_id for link in talk.say(name)]
    assert [link.entity_id for link in talk.say(name)] == first
    assert len(talk.known) == len(first) == 2


def test_a_fact_may_name_an_owner_in_each_of_its_names() -> None:
    others = [f"P{chr(97 + place)}a's dog" for place in range(MAX_ENTITIES)]
    assert len(EntityTalk().say(*others)) == 1 + 2 * MAX_ENTITIES
    links = EntityTalk().say(*others[1:], subject="Zoe's dog")
    assert len(links) == 2 * MAX_ENTITIES


def test_the_ties_of_a_speaker_whose_name_is_too_long_have_no_owner() -> None:
    talk = EntityTalk(user_names=("Ana",))
    assert talk.say("Eve", subject="my wife", speaker="B" + "x" * MAX_NAME) != ()
    assert {one.name for one in talk.known.values()} == {"Eve"}


def test_entities_of_dropped_facts_alone_are_not_registered() -> None:
    found = TurnEntities.of_facts([fact_naming(text=f"{name}.", subject=name) for name in ("Ana", "Tom")], (), CONTEXT)
    events = entity_events(FactLinks(found), commit("t1", added("Tom.", subject="Tom")).events)
    assert [(event.event, getattr(event, "name", None), event.ordinal) for event in events] == [
        ("entity_registered", "Tom", 1),
        ("fact_linked", None, 2),
    ]


def test_the_same_source_gives_the_same_events() -> None:
    context = replace(CONTEXT, speaker="Alice", user_names=("Alice",))
    kept = commit("t1", added("It.")).events
    facts = [fact_naming("my brother Tom")]
    first, again = (entity_events(FactLinks(TurnEntities.of_facts(facts, (), context)), kept) for _ in range(2))
    assert first == again
    assert len(first) == 4


def test_a_speaker_who_is_called_like_a_tie_has_that_as_a_name() -> None:
    talk = EntityTalk(user_names=("Alice",))
    links = talk.say("my dog", speaker="my wife Eve", kind="animal")
    assert [link.step for link in links if link.name == "my dog"] == ["new"]
    assert [one.name for one in talk.known.values() if one.type == "person"][-1] == "my wife Eve"


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        (
            [fact_naming("Rome", kind="place", subject="Ana"), fact_naming("Oslo", kind="place", subject="Eve")],
            [{"Ana", "Rome"}, {"Eve", "Oslo"}],
        ),
        ([fact_naming("Ana"), fact_naming("Eve")], [{None, "Ana", "Eve"}] * 2),
    ],
)
def test_facts_of_equal_words_keep_their_links(facts: list[ExtractedFact], named: list[set[str | None]]) -> None:
    assert [{link.name for link in links} for links in EntityTalk().tell(*facts)] == named


@pytest.mark.parametrize("first", ["my wife", "my wife's dog Bello"])
def test_the_dog_of_a_wife_without_a_name_is_hers(first: str) -> None:
    talk = EntityTalk(user_names=("Alice",))
    talk.say(first)
    talk.say("my wife's dog Bello", kind="animal")
    (user,) = [one for one in talk.known.values() if one.keys("user")]
    (wife,) = [one for one in talk.known.values() if f"wife of {user.entity_id}" in one.keys("tie")]
    assert talk.entity("Bello").keys("tie") == {f"dog of {wife.entity_id}"}
    assert len(talk.known) == 3
    assert wife.entity_id in {link.entity_id for link in talk.say("my wife Ana")}


@pytest.mark.parametrize(("is_user", "proposed"), [(True, 0), (False, 1)])
def test_a_user_without_a_name_is_not_proposed_to_be_merged(*, is_user: bool, proposed: int) -> None:
    ben, ana = known_entity("Ben"), known_entity("Ana")
    nameless = known_entity(tie_alias("wife", "my wife", ben.entity_id), is_user=is_user)
    said = [fact_naming("Ben's wife Ana", subject="Tom")]
    found = TurnEntities.of_facts(said, [ben, ana, nameless], CONTEXT)
    assert len(found.resolver.proposed) == proposed


def test_a_person_known_by_two_names_of_the_user_is_the_user() -> None:
    known = known_entity("Alice", "Alice Keller")
    context = replace(CONTEXT, speaker="Alice", user_names=("Alice", "Alice Keller"))
    found = TurnEntities.of_facts([fact_naming()], [known], context)
    assert not found.new
    assert found.registry[known.entity_id].keys("user")


def test_a_subject_of_a_fact_without_one_is_a_mention() -> None:
    dance = fact_naming("Uwe", "Vera", "Alice", role="subject")
    ((user, *links),) = EntityTalk(user_names=("Alice",)).tell(dance)
    assert user.role == "subject"
    assert [(link.name, link.role) for link in links] == [("Uwe", "mention"), ("Vera", "mention")]


USER = known_entity("Alice", is_user=True)
ANA, WIFE = spoken_alias("Ana"), tie_alias("wife", "my wife Ana", USER.entity_id)


@pytest.mark.parametrize(
    ("hidden", "said", "names"),
    [
        ((), ["Ana", "my wife", "my wife Ana"], ["my wife"]),
        ((ANA, WIFE), ["my wife"], ["my wife"]),
        ((ANA, WIFE), ["Ana", "Ana"], ["Ana"]),
        ((ANA,), ["my wife Ana"], ["Ana"]),
    ],
)
def test_a_hidden_alias_is_added_again_once(hidden: tuple[Alias, ...], said: list[str], names: list[str]) -> None:
    facts = [fact_naming(name, text=f"{name} sings") for name in said]
    wife = known_entity(ANA, WIFE, hidden=hidden)
    found = TurnEntities.of_facts(facts, [USER, wife], replace(CONTEXT, user_names=("Alice",)))
    assert [(one.entity_id, one.alias.text) for one in found.resolver.added] == [(wife.entity_id, one) for one in names]


def relative(tie: str, text: str, *names: str, twins: Sequence[KnownEntity] = ()) -> KnownEntity:
    """Somebody of this tie to the user, perhaps with a name, and who they may be one with."""
    return known_entity(tie_alias(tie, text, USER.entity_id), *names, twins=[one.entity_id for one in twins])


BROTHER, PET = relative("brother", "my brother"), relative("dog", "my dog")
WIFE_BEFORE = relative("wife", "my wife")


@pytest.mark.parametrize(
    ("known", "said", "expected"),
    [
        ([BROTHER, relative("brother", "my little brother", twins=[BROTHER])], "my brother", None),
        ([BROTHER, relative("brother", "my brother Cleo", "Cleo", twins=[BROTHER])], "my brother", BROTHER),
        ([PET, relative("dog", "our dog", twins=[PET]), relative("dog", "my dog Rex", "Rex")], "my dog", None),
        ([WIFE_BEFORE, relative("wife", "my new wife Petra", "Petra", twins=[WIFE_BEFORE])], "my wife", None),
    ],
)
def test_of_several_of_a_tie_the_only_one_without_a_name_is_meant_unless_another_is_the_new_one(
    known: list[KnownEntity], said: str, expected: KnownEntity | None
) -> None:
    talk = replace(CONTEXT, user_names=("Alice",), speaker="Alice")
    found = TurnEntities.of_facts([fact_naming(said, text=f"{said} sings")], [USER, *known], talk)
    linked = {link.entity_id for link in found.links if link.name == said}
    assert linked & {one.entity_id for one in known} == ({expected.entity_id} if expected else set())
    assert bool(found.new) == (expected is None)
