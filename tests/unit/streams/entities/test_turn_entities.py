"""Laws of names: whatever was said before, a name that is said again is found again, and nobody is mixed up."""

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.schemas.entities import (
    MAX_ENTITIES,
    MAX_NAME,
    MAX_UNLINKED,
    SAME_AS,
    Alias,
    KnownEntity,
    NamedEntity,
    NamedRelation,
)
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.linker import entity_events, unlinked_names
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.entities.resolver import MAX_NEW_ENTITIES, NameContext
from tests.support.builders.commits import added, commit
from tests.support.harnesses.entity_talk import EntityTalk

FIRST = ("Ana", "Anna", "Tom", "Thomas", "Tommy", "Carl", "Carla", "Bob", "Robert", "ÁNA", "Li")
LAST = ("", " Keller", " Schmidt", " Maria Keller")
TIES = ("", "my brother ", "my wife ", "our dog ", "Alice's brother ", "Tom's wife ", "meine Frau ")
ORIGINS = ("", " from work", " from the gym")
NAMES = st.builds(
    lambda tie, first, last, origin: f"{tie}{first}{last}{origin if not tie else ''}",
    *(st.sampled_from(words) for words in (TIES, FIRST, LAST, ORIGINS)),
) | st.sampled_from(["my wife", "my brother", "our dog", "Tom's wife", "Alice's brother"])
PROPER = st.builds("".join, st.tuples(st.sampled_from(FIRST), st.sampled_from(LAST)))
SIGNS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)
LONG_KEYS = st.sampled_from(["\ufdfa" * 20, " from ", "A"])  # the sign is 18 letters of a key
TEXTS = SIGNS | st.lists(LONG_KEYS, max_size=4).map("".join)
SPEAKERS = st.sampled_from(["Alice", "Bob Marsh", None])
SAID = st.lists(st.tuples(NAMES, SPEAKERS), max_size=8)


@settings(max_examples=300)
@given(SAID, NAMES, SPEAKERS)
def test_a_name_that_is_said_again_is_found_again(
    said: list[tuple[str, str | None]], name: str, speaker: str | None
) -> None:
    talk = EntityTalk(user_names=("Alice",))
    for before, by in said:
        talk.say(before, speaker=by)
    first = [link.entity_id for link in talk.say(name, speaker=speaker)]
    known = len(talk.known)
    again = talk.say(name, speaker=speaker)
    assert [link.entity_id for link in again] == first
    assert len(talk.known) == known
    assert all(link.step != "new" for link in again)


@settings(max_examples=300)
@given(SAID, PROPER, PROPER)
def test_two_names_of_one_that_are_told_again_change_nothing(
    said: list[tuple[str, str | None]], one: str, other: str
) -> None:
    talk = EntityTalk(user_names=("Alice",))
    for name, by in said:
        talk.say(name, speaker=by)
    same = NamedRelation(subject=one, predicate=SAME_AS, object=other)
    people = tuple(NamedEntity(name=name, type="person", role="object") for name in (one, other))
    fact = ExtractedFact(text="They are one.", excerpt="said", search_text="", entities=people, relations=(same,))
    first = talk.tell(fact)
    known = dict(talk.known)
    again = talk.tell(fact)
    assert talk.known == known
    assert [link.entity_id for link in again[0]] == [link.entity_id for link in first[0]]


@settings(max_examples=300)
@given(SAID)
def test_what_tells_two_apart_is_never_joined(said: list[tuple[str, str | None]]) -> None:
    talk = EntityTalk(user_names=("Alice",))
    for name, by in said:
        talk.say(name, speaker=by)
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
    fact = ExtractedFact(text="It.", excerpt="it", search_text="", subject=None, entities=entities)
    (links,) = talk.tell(fact)
    assert {link.entity_id for link in links} <= talk.known.keys()
    assert len({link.entity_id for link in links}) == len(links)


def test_a_source_brings_a_bounded_number_of_entities() -> None:
    facts = tuple(
        ExtractedFact(
            text=f"Fact {place}.",
            excerpt="it",
            search_text="",
            entities=tuple(NamedEntity(name=f"N{place}x{number}") for number in range(MAX_ENTITIES)),
        )
        for place in range(30)
    )
    talk = EntityTalk()
    links = talk.tell(*facts)
    assert len(talk.known) == MAX_NEW_ENTITIES
    assert all(len(one) >= 1 for one in links)  # of the user


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


def test_the_ties_of_a_speaker_whose_name_is_too_long_are_nobodys() -> None:
    talk = EntityTalk(user_names=("Ana",))
    assert talk.say("Eve", subject="my wife", speaker="B" + "x" * MAX_NAME) != ()
    assert {one.name for one in talk.known.values()} == {"Eve"}


def test_what_only_dropped_facts_name_stays_unknown() -> None:
    facts = [
        ExtractedFact(text=f"{name}.", excerpt=name, search_text="", subject=name, entities=())
        for name in ("Ana", "Tom")
    ]
    context = NameContext(owner="default/alice", source_id="t1")
    found = TurnEntities.of_facts(facts, (), context)
    kept = commit("t1", added("Tom.", excerpt="Tom", subject="Tom"))
    events = entity_events(found, kept.events)
    assert [(event.event, getattr(event, "name", None)) for event in events] == [
        ("entity_registered", "Tom"),
        ("fact_linked", None),
    ]
    assert [event.ordinal for event in events] == [1, 2]


def test_the_same_source_gives_the_same_events() -> None:
    fact = ExtractedFact(text="It.", excerpt="it", search_text="", entities=(NamedEntity(name="my brother Tom"),))
    context = NameContext(owner="default/alice", source_id="t1", speaker="Alice", user_names=("Alice",))
    kept = commit("t1", added("It.", excerpt="it"))
    first, again = (entity_events(TurnEntities.of_facts([fact], (), context), kept.events) for _ in range(2))
    assert first == again
    assert len(first) == 4


def test_a_speaker_who_is_called_like_a_tie_is_just_called_so() -> None:
    talk = EntityTalk(user_names=("Alice",))
    links = talk.say("my dog", speaker="my wife Eve", kind="animal")
    assert [link.step for link in links if link.name == "my dog"] == ["new"]
    assert [one.name for one in talk.known.values() if one.type == "person"][-1] == "my wife Eve"


def test_two_facts_of_equal_words_keep_their_own_links() -> None:
    talk = EntityTalk()
    facts = [
        ExtractedFact(
            text="She likes tea.", excerpt="tea", search_text="", subject=name, entities=(NamedEntity(name=place),)
        )
        for name, place in (("Ana", "Rome"), ("Eve", "Oslo"))
    ]
    named = [{link.name for link in links} for links in talk.tell(*facts)]
    assert named == [{"Ana", "Rome"}, {"Eve", "Oslo"}]


def test_facts_of_equal_words_about_one_subject_lose_no_link() -> None:
    talk = EntityTalk()
    facts = [
        ExtractedFact(text="They met.", excerpt="met", search_text="", entities=(NamedEntity(name=name),))
        for name in ("Ana", "Eve")
    ]
    assert [{link.name for link in links} for links in talk.tell(*facts)] == [{None, "Ana", "Eve"}] * 2


@pytest.mark.parametrize("first", ["my wife", "my wife's dog Bello"])
def test_what_is_of_somebody_without_a_name_is_theirs(first: str) -> None:
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
    talk = EntityTalk()
    talk.say("Ben")
    talk.say("Ana")
    tie = Alias(text="my wife", kind="tie", key=f"wife of {talk.entity('Ben').entity_id}")
    mark = Alias(text="user", kind="user", key="user")
    aliases = (mark, tie) if is_user else (tie,)
    nameless = KnownEntity(entity_id=UUID(int=1), name="user", type="person", aliases=aliases)
    context = NameContext(owner="default/alice", source_id="t9")
    entities = (NamedEntity(name="Ben's wife Ana", type="person", role="object"),)
    fact = ExtractedFact(text="Ben met Ana", excerpt="said", search_text="", subject="Tom", entities=entities)
    found = TurnEntities.of_facts([fact], [*talk.known.values(), nameless], context)
    assert len(found.resolver.proposed) == proposed


def test_names_beyond_the_bound_of_a_source_and_names_of_nobody_are_told() -> None:
    names = [NamedEntity(name="she"), *(NamedEntity(name=f"N{number}") for number in range(MAX_NEW_ENTITIES + 1))]
    parts = [names[start : start + MAX_ENTITIES] for start in range(0, len(names), MAX_ENTITIES)]
    facts = [
        ExtractedFact(text=f"F{at}", excerpt="it", search_text="", entities=tuple(part))
        for at, part in enumerate(parts)
    ]
    found = TurnEntities.of_facts(facts, [], NameContext(owner="default/alice", source_id="t1"))
    left_out = [(one.name, one.reason) for one in unlinked_names(found, [])]
    assert left_out[0] == ("she", "no_name")
    assert left_out[1][1] == left_out[2][1] == "too_many"  # the user is one of a hundred
    assert [reason for _, reason in left_out[3:]] == ["no_new_fact"] * (MAX_UNLINKED - 3)


def test_who_was_known_by_two_names_of_the_user_is_the_user() -> None:
    names = ("Alice", "Alice Keller")
    aliases = tuple(Alias(text=name, key=name.casefold()) for name in names)
    known = KnownEntity(entity_id=UUID(int=1), name="Alice", type="person", aliases=aliases)
    context = NameContext(owner="default/alice", source_id="t1", speaker="Alice", user_names=names)
    found = TurnEntities.of_facts(
        [ExtractedFact(text="Alice sings.", excerpt="I sing", search_text="")], [known], context
    )
    assert not found.new
    assert found.registry[known.entity_id].keys("user")


def test_what_a_reply_calls_the_subject_of_a_fact_without_one_is_named_all_the_same() -> None:
    talk = EntityTalk(user_names=("Alice",))
    named = tuple(NamedEntity(name=name, type="person", role="subject") for name in ("Uwe", "Vera", "Alice"))
    ((user, *links),) = talk.tell(
        ExtractedFact(text="Uwe and Vera dance.", excerpt="x", search_text="", entities=named)
    )
    assert (user.role, [(link.name, link.role) for link in links]) == (
        "subject",
        [("Uwe", "mention"), ("Vera", "mention")],
    )
