"""Names that several people, pets, places or companies share: who stays two, who is found again, and why."""

import tomllib
from itertools import combinations, permutations
from typing import Final

import pytest

from mnemolog.schemas.entities import EntityLink, NamedEntity
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.names import read_name
from mnemolog.streams.entities.resolver import AskedName, EntityRegistry, find_entity
from mnemolog.streams.entities.subjects import entity_relation
from tests.support.builders.entities import known_entity, tie_alias
from tests.support.harnesses.entity_talk import EntityTalk
from tests.support.paths import ROOT

SHORT_FORMS_TABLE: Final = ROOT / "streams/entities/short_forms.toml"
KINDS = {"pet": "animal", "place": "place", "firm": "organisation", "thing": "product", "what": "other"}


def talk_of(said: str, user: str | None) -> tuple[EntityTalk, list[EntityLink | None]]:
    """The links of the names in `said`, each the subject of a turn of the user; "pet: Max" gives a type."""
    talk = EntityTalk(user_names=(user,) if user else ())
    links = []
    for name in said.split(" | "):
        prefix, _, rest = name.rpartition(": ")
        told = talk.say(subject=rest, kind=KINDS.get(prefix, "person"), speaker=user)
        links.append(next((link for link in told if link.role == "subject"), None))
    return talk, links


def groups(said: str, user: str | None) -> str:
    """A letter for the entity of each name, in the order in which they are new; U for the user, - for a mere word."""
    talk, links = talk_of(said, user)
    letters: dict[object, str] = {one.entity_id: "U" for one in talk.known.values() if one.keys("user")}
    found = []
    for link in links:
        if link is not None and link.entity_id not in letters:
            letters[link.entity_id] = "ABCDEFGH"[len(set(letters.values()) - {"U"})]
        found.append("-" if link is None else letters[link.entity_id])
    return "".join(found)


NAMESAKES_OF_THE_USER = [
    ("Sam", "my colleague Sam | Sam | my colleague Sam", "AUA"),
    ("Sam", "Sam's brother Sam | Sam's brother", "AA"),
    ("Sam", "my father Sam | my son Sam | my father | my son", "ABAB"),
    ("Maria", "minha avó Maria | Maria | mi jefa Maria", "AUB"),
    ("Sam", "I | Eva's husband Sam | Sam | Eva's husband Sam", "UAUA"),
    ("Alice", "I | Tom's boss Alice | Alice", "UAU"),
    ("Jon", "I | Jonathan", "UA"),
    ("Jonathan Miller", "I | Jonathan | my cousin Jonathan", "UUA"),
    ("Robert", "I | Bob | my colleague Bob | Robert", "UAAU"),
    ("Alexander", "I | Alex", "UA"),
    ("Sam", "Sam (my colleague) | colleague Sam | Sam", "AAU"),
    ("Sam", "friend Sam | Uncle Sam | my uncle Sam", "ABB"),
    ("Olga", "her sister Olga | Olga | her sister Olga", "AUA"),
]
SHORT_FORMS = [
    (None, "my sister Ana | Ana at the gym | my sister Ana | Ana", "ABAA"),
    (None, "Alex | Alexander | Alexandra | Alex | Alexandra", "AABAB"),
    (None, "Chris | Christine | Christopher | Christine | Chris", "AABAA"),
    (None, "Саша | Александр | Александра", "AAB"),
    (None, "Mel | Melissa | Melanie | Melvin", "AABC"),
    (None, "Alex Keller | Alexander | Alexandra Keller", "AAB"),
    (None, "my friend Robin | Rob | Robert | Roberta", "ABCD"),
    (None, "Daniela | Dan", "AB"),
    (None, "Dan | Daniela | Dan | Daniela", "ABAB"),
    (None, "Roberta | Rob", "AB"),
    # found again, in both ways
    (None, "Alexandra | Alex | Alexandra", "AAA"),
    (None, "Robert | Bob | Bobby | Bob | Bobby", "AABAB"),
    (None, "Bob | Bobby | Robert", "ABC"),
    (None, "José | Pepe | Jose", "AAA"),
    (None, "Guilherme Maturana | Guili | Guilherme", "AAA"),
    (None, "Giuseppe Verdi | Beppe | Peppe Verdi", "AAB"),
    (None, "my friend Steffi | Stefanie | Stefanie Kurz", "AAA"),
    (None, "Дмитрий | Дима | дмитрий", "AAA"),
    (None, "Dr. Keller | Keller | Dr. Keller | Prof. Keller", "AAAB"),
    (None, "Dr. Keller | Ana Keller | Keller | Keller | Dr. Keller", "ABCCA"),
    (None, "Prof. Novak | Dr. Ina Novak | Novak | Prof. Novak | Ina", "ABCAB"),
    (None, "Dr. Martin | Martin", "AB"),
    (None, "Ana Keller | Keller, Ana | Ana", "AAA"),
    (None, "Kovac, Petra | Petra Kovac", "AA"),
    (None, "Dr. Martin | Martin Keller | Dr. Martin", "ABA"),
    (None, "Martin Keller | Dr. Martin | Martin Keller", "ABA"),
    (None, "Dr. Ana Keller | Ana | Dr. Keller", "AAB"),
    (None, "Nathan | Nathaniel | Johann | Johannes | Harrison | Harris", "ABCDEF"),
    (None, "Eve | Evelyn | Joyce | Joy | Kim | Kimberly | Lena | Magdalena", "ABCDEFGH"),
    (None, "Jonathan Miller | Jonahtan Miller | Jon", "AAA"),
]
TIES = [
    (None, "my brother Tom | my colleague Tom | my brother Tom", "ABA"),
    (None, "Ana's brother Leo | Ben's brother Leo", "AB"),
    (None, "my sister Eva | her mother Eva | her mother Eva | my sister", "ABBA"),
    (None, "my wife Anna | my ex-wife Anna | my wife", "ABA"),
    (None, "my wife | my new wife Petra | my wife | my wife", "ABCC"),
    (None, "my older brother Tom | my younger brother Tom | my older brother", "ABA"),
    (None, "John Smith | John Smith Jr. | John Smith | John Smith Jr.", "ABAB"),
    (None, "Pieter Brueghel | Pieter Brueghel the Younger | Pieter Brueghel the Elder", "ABC"),
    (None, "Tom | little Tom | old Tom | little Tom", "ABCB"),
    (None, "another Tom | Tom", "AA"),
    (None, "my half-sister Mia | Mia | my sister | my half-sister", "AABA"),
    (None, "my stepson Tom | Tom | my stepson | my son", "AAAB"),
    (None, "my former boss Ana | my boss | my ex-boss | Ana", "ABAA"),
    (None, "mein Ex-Chef Karl | mein Chef | mein ehemaliger Chef | Karl", "ABAA"),
    (None, "my ex Tom | Tom | my ex", "AAA"),
    (None, "pet: my old dog Rex | pet: Rex | pet: my dog", "AAA"),
    (None, "my trainer Bob | Bob | my trainer Bob", "AAA"),
    (None, "my first wife | my second wife | my first wife", "ABA"),
    (None, "my first wife | my wife | my first wife | my wife", "ABAB"),
    (None, "my first wife Ana | my second wife Ana", "AB"),
    (None, "my late wife | my wife Petra | my late wife | my wife", "ABAB"),
    (None, "my brother | my other brother | my brother | my other brother", "ABAB"),
    (None, "my twin Ana | Ana | my twin | my twin sister", "AAAB"),
    (None, "my kid Leo | my kid | my older kid", "AAA"),
    (None, "my friend | my friend | my friend Eva", "ABC"),
    (None, "one of my half-brothers | my other half-brother | one of my half-brothers", "ABC"),
    (None, "one of Ana's sisters Eva | Ana's sister Eva | Eva", "AAA"),
    (None, "my colleague | my cousin | my colleague | my neighbour | my neighbour", "ABCDD"),
    (None, "my cousin | my cousin | my aunt | my aunt | my uncle Bob | Bob | my mother | my mother", "ABCDEEFF"),
    (None, "my best friend | my friend | my best friend", "ABA"),
    (None, "my first wife Ana | my second wife Eva | Ana | Eva", "ABAB"),
    (None, "Tom | another Tom | the other Tom | Tom", "ABBA"),
    (None, "my brother Jan | ein anderer Jan | der andere Jan | my brother Jan", "ABBA"),
    (None, "Tom from work | el otro Tom | the other Tom", "ABB"),
]
TYPES = [
    (None, "pet: my dog Max | my son Max | pet: my cat Max | pet: my dog | my son", "ABCAB"),
    (None, "place: Paris | Paris | place: Paris", "ABA"),
    (None, "place: Richmond, Virginia | place: Virginia | place: Richmond, Virginia", "ABA"),
    (None, "firm: Siemens | my boss Siemens | firm: Siemens", "ABA"),
    (None, "firm: Ferrero | Mr. Ferrero | place: Ferrero", "ABC"),
    (None, "thing: Alexa | my niece Alexa | Alexander", "ABC"),
    (None, "what: Max | pet: Max | Max", "AAB"),
]
WORDS = [
    ("Sam", "girlfriend | the boss | her mother | his boss | a friend | amigo", "------"),
    ("Sam", "my girlfriend | girlfriend | the girlfriend | my girlfriend Mia", "AAAA"),
    ("Sam", "Mum | Dad | seine Mutter | su hermano | Freundin", "-----"),
    ("Sam", "my mum | Mum | Mum", "AAA"),
    ("Sam", "my boss Eva | the boss | firm: Boss | Boss", "AABC"),
    ("Sam", "Mari | Tia | Zia", "ABC"),
    ("Sam", "friends | my friends | colleagues | meine Freunde | ses cousins | Oma", "------"),
    ("Sam", "my uncle Bob | Uncle Bob | Bob | Father Brown | Boss Hogg", "AAABC"),
    ("Sam", "Tante Erna | meine Tante Erna | Cousins", "AAB"),
    ("Sam", "my friend Eva | my friend Ina | friend", "AB-"),
]


@pytest.mark.parametrize(("user", "said", "expected"), [*NAMESAKES_OF_THE_USER, *SHORT_FORMS, *TIES, *TYPES, *WORDS])
def test_names_are_of_these_entities(user: str | None, said: str, expected: str) -> None:
    assert groups(said, user) == expected


SHORT_AND_FULL: dict[str, list[str]] = {}
for _language in tomllib.loads(SHORT_FORMS_TABLE.read_text()).values():
    for _full, _shorts in _language.items() if isinstance(_language, dict) else ():
        for _short in _shorts.split():
            SHORT_AND_FULL.setdefault(_short, []).append(_full)
OF_ONE_SHORT_FORM = [
    (short, *pair) for short, full in SHORT_AND_FULL.items() for pair in combinations(dict.fromkeys(full), 2)
]
OF_ONE_FULL_NAME = [
    ("liz", "beth", "elizabeth"), ("bob", "bobby", "robert"), ("rob", "bob", "robert"), ("dan", "danny", "daniel")
]  # fmt: skip
UNLISTED = [
    ("lena", "helena", "magdalena"), ("mar", "maria", "martin"), ("mel", "melissa", "melanie"),
    ("jon", "jonas", "jonathan"),
    ("dan", "daniela", "daniel"), ("rob", "robin", "robert"), ("max", "maxine", "maximilian"),
    ("alex", "alexandra", "alexander"),
    ("tina", "martina", "christina"), ("anna", "johanna", "susanna"), ("ana", "ana keller", "ana schmidt"),
    ("ana keller", "ana", "anastasia"), ("john", "john smith", "john smith jr"), ("robert", "bob hill", "bob smith"),
    ("alec", "alexander", "alexandra"), ("carol", "carl", "carolina"), ("jon", "john", "jonathan"),
    ("nick", "nicolas", "nicholas"), ("jonathan miller", "jonahtan miller", "jonathan millar"),
]  # fmt: skip


@pytest.mark.parametrize("names", [*OF_ONE_SHORT_FORM, *OF_ONE_FULL_NAME, *UNLISTED], ids="-".join)
def test_the_order_in_which_three_names_are_told_joins_no_others(names: tuple[str, str, str]) -> None:
    """Nobody is joined without a mark in one order who is two in another; two full names are never one."""
    _, full, other = names
    found = set()
    for told in permutations(names):
        talk = EntityTalk()
        entity_of = {name: talk.say(name.title())[-1].entity_id for name in told}
        doubted = {twin for one in talk.known.values() for twin in one.possible_twins}
        doubted |= {one.entity_id for one in talk.known.values() if one.possible_twins}
        assert names in OF_ONE_FULL_NAME or entity_of[full] != entity_of[other] or "jonahtan miller" in names, told
        pairs = (pair for pair in combinations(sorted(names), 2) if len({*map(entity_of.get, pair)}) == 1)
        found.add(frozenset(pair for pair in pairs if entity_of[pair[0]] not in doubted))
    assert len(found) == 1, found


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Alex | Alexander | Alexandra", "known by another full name or short form"),
        ("Tom from work | my brother Tom", "known by another tie or origin"),
        ("Robert | Robert Hill | Bob Smith", "known by another full name or short form"),
        ("Tom | another Tom", "said to be another one"),
        ("Tom Miller | Tom Berg | Tom", None),
    ],
)
def test_a_link_says_what_speaks_against_the_compared_entity(said: str, reason: str | None) -> None:
    _, (*_, link) = talk_of(said, None)
    assert link is not None
    assert (link.step, bool(link.compared), link.reason) == ("new", True, reason)


@pytest.mark.parametrize(
    ("said", "twins"),
    [
        ("my wife Ana Keller | my wife Ana Schmidt", 1),
        ("my sister Eva Berg | my sister Eva Roth", 1),
        ("Ana Keller | Ana Schmidt | Ana Schmidt-Keller", 2),
        ("Maria Luisa Keller | Maria Keller", 1),
        ("João Silva | João Pedro Silva", 1),
        ("John Smith | J. Smith", 1),
        ("J. R. Keller | J. Keller", 1),
        ("Andrea | Andreas | Andi", 2),
        ("Antonia | Anton | Toni", 2),
        ("Tom | the other Tom", 1),
        ("Ana Keller | Keller", 1),
        ("Mr. Novak | Ina Novak", 1),
        ("Dr. Keller | Ana Keller | Keller", 2),
    ],
)
def test_a_name_by_marriage_a_middle_name_and_the_other_one_are_asked_about(said: str, twins: int) -> None:
    talk, (*_, link) = talk_of(said, None)
    assert link is not None
    assert (link.step, len(link.compared)) == ("new", twins)
    assert len(talk.asked) == 1


@pytest.mark.parametrize("said", ["my colleague Sam", "Sam from work", "my older brother Sam", "her son Sam"])
def test_a_namesake_is_no_possible_twin_of_the_user(said: str) -> None:
    talk, (_, link) = talk_of(f"I | {said}", "Sam")
    assert link is not None
    assert talk.known[link.entity_id].possible_twins == ()
    assert talk.asked == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna-Lena", "Anna"),
        ("Jean-Luc Moreau", "Jean"),
        ("Mary Ann", "Mary"),
        ("Hans-Peter", "Hans"),
        ("Dr. Novak", "Prof. Novak"),
        ("Professor Novak", "Dr. Novak"),
        ("my ex-wife Anna", "my wife Anna"),
        ("my old roommate Jan", "my roommate Jan"),
        ("my previous landlord Tom", "my landlord Tom"),
        ("my half-brother Tom", "my brother Tom"),
        ("my stepson Leo", "my son Leo"),
        ("my mother-in-law Ana", "my mother Ana"),
        ("my godfather Max", "my father Max"),
        ("my great-aunt Rosa", "my aunt Rosa"),
        ("my twin Ana", "my sister Ana"),
        ("my trainer Bob", "my friend Bob"),
        ("my late husband Jan", "my colleague Jan"),
        ("my Stiefsohn Tom", "my Sohn Tom"),
        ("my ex-boyfriend Jan", "my boyfriend Jan"),
    ],
)
def test_what_tells_two_apart_leaves_a_doubt_in_either_order(one: str, other: str) -> None:
    for said in (f"{one} | {other}", f"{other} | {one}"):
        talk, (_, link) = talk_of(said, None)
        assert link is not None
        assert (link.step, len(link.compared), len(talk.known)) == ("new", 1, 2 + ("my " in one))


@pytest.mark.parametrize(
    ("said", "is_marked"),
    [
        ("my friend | my friend", True),
        ("my colleague Eva | my colleague", True),
        ("my classmate | my classmate Eva", True),
        ("my wife | my first wife", True),
        ("my late wife | my wife", True),
        ("my brother | my other brother", True),
        ("one of my half-brothers | my other half-brother", True),
        ("one of my aunts | my aunt", True),
        ("my first wife | my second wife", False),
        ("my stepson | my son", False),
        ("my son | my son-in-law", False),
    ],
)
def test_a_tie_alone_may_be_of_another_bearer(said: str, is_marked: bool) -> None:
    talk, (_, link) = talk_of(said, None)
    assert link is not None
    assert (link.step, bool(talk.known[link.entity_id].possible_twins)) == ("new", is_marked)


def test_a_tie_that_one_source_says_twice_is_of_one() -> None:
    talk = EntityTalk()
    first, second = talk.tell(about_my("friend", "moved"), about_my("friend", "sings"))
    assert first[-1].entity_id == second[-1].entity_id


def about_my(tie: str, act: str) -> ExtractedFact:
    named = NamedEntity(name=f"my {tie}", type="person", role="object")
    return ExtractedFact(text=f"My {tie} {act}.", excerpt=act, search_text="", entities=(named,))


@pytest.mark.parametrize("words", ["a colleague of mine", "a neighbour", "an old friend of ours", "someone"])
def test_an_indefinite_word_is_nobody_known(words: str) -> None:
    assert groups(f"{words} | {words}", None) == "--"


@pytest.mark.parametrize("kind", ["pet", "place", "firm", "thing"])
@pytest.mark.parametrize("user", ["Sam", "Florence", "Dell"])
def test_a_pet_or_a_thing_with_the_name_of_the_user_is_another(kind: str, user: str) -> None:
    assert groups(f"I | {kind}: {user} | {user} | what: {user}", user) == "UAUU"


@pytest.mark.parametrize("name", [(), ("Alice",)])
def test_a_friend_of_the_user_is_another_whatever_the_user_is_called(name: tuple[str, ...]) -> None:
    user = known_entity(*name, is_user=True)
    friend = known_entity("Sam", tie_alias("friend", "my friend Sam", user.entity_id))
    assert entity_relation(user, friend) == entity_relation(friend, user) == "other"


def test_a_word_for_a_relative_of_nobody_known_is_reported_as_no_name() -> None:
    assert read_name("her mother") is None
    bare = read_name("girlfriend")
    assert bare is not None
    assert (bare.tie, bare.name, bare.is_bare) == ("girlfriend", None, True)


@pytest.mark.parametrize(
    ("called", "name"),
    [
        (("Dan", "Daniela"), "Daniel"),
        (("Dan", "Daniela Kurz"), "Daniel"),
        (("Max", "Maxine"), "Maximilian"),
        (("Chris", "Christa"), "Christopher"),
        (("Sam", "Samira"), "Samuel"),
        (("Dan", "Daniel"), "Daniela"),
    ],
)
def test_another_full_name_of_a_short_one_is_of_another_person(called: tuple[str, str], name: str) -> None:
    """Also where a person merged two of these names."""
    asked = read_name(name)
    assert asked is not None
    found = find_entity(AskedName(asked, "person"), EntityRegistry([known_entity(*called)]))
    assert (found.entity, len(found.compared)) == (None, 1)


@pytest.mark.parametrize(
    ("called", "name"), [(("Dan", "Danny"), "Daniel"), (("Bob", "Bee"), "Robert"), (("Alex", "Alexander"), "Alexander")]
)
def test_short_forms_and_nicknames_are_no_other_full_name(called: tuple[str, str], name: str) -> None:
    asked = read_name(name)
    assert asked is not None
    assert find_entity(AskedName(asked, "person"), EntityRegistry([known_entity(*called)])).entity is not None
