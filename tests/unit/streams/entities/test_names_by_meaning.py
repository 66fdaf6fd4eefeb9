"""The step that compares names by their vectors: what it takes for a possible twin, and that it never links."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from mnemolog.schemas.entities import MAX_ENTITIES, MAX_NAME_VECTORS, EntityType, NamedEntity
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.vector import Vector
from mnemolog.streams.entities.names import name_key, read_name
from mnemolog.streams.entities.resolver import NameVectors, has_meaning, names_to_embed
from mnemolog.streams.llm.minilm_embedder import MiniLmEmbedder
from mnemolog.streams.stages.effective_settings import MINILM_DEFAULTS
from tests.quality.name_twins import NamePair, labelled, similarities, unlabelled
from tests.support.builders.commits import vector
from tests.support.harnesses.entity_talk import EntityTalk

FLOOR = MINILM_DEFAULTS.name_twin
NEAR = "the names are near in meaning"
ARENA, STADIUM, MUSEUM = (1.0, 0.0), (0.9, 0.2), (0.0, 1.0)


@pytest.fixture(scope="module")
def measured() -> dict[str, list[tuple[NamePair, float]]]:
    """The similarity of the names of each pair, by its label."""

    async def measure() -> dict[str, list[tuple[NamePair, float]]]:
        embedder = MiniLmEmbedder()
        groups = {"same": labelled("same"), "different": labelled("different"), "unlabelled": unlabelled()}
        try:
            return {
                label: list(zip(pairs, await similarities(embedder, pairs), strict=True))
                for label, pairs in groups.items()
            }
        finally:
            await embedder.close()

    return asyncio.run(measure())


def talk_with(named: Iterable[tuple[str, tuple[float, float]]], floor: float = 0.8) -> EntityTalk:
    return EntityTalk(vectors=NameVectors({name_key(name): vector(*values) for name, values in named}, floor))


ALLIANZ = (("Allianz Arena", ARENA), ("Bayern stadium", STADIUM), ("Deutsches Museum", MUSEUM))


def test_near_names_are_possible_twins_and_never_more(measured: dict[str, list[tuple[NamePair, float]]]) -> None:
    near = {
        label: Counter(pair.half for pair, one in measured[label] if one >= FLOOR) for label in ("same", "different")
    }
    assert near == {"same": {0: 16, 1: 15}, "different": {0: 13, 1: 13}}
    nobody_chose = [one for _, one in measured["unlabelled"]]
    assert len(nobody_chose) > 20_000
    assert sum(one >= FLOOR for one in nobody_chose) < len(nobody_chose) / 1000
    assert max(one for _, one in measured["different"]) > max(one for _, one in measured["same"])  # so it links nothing


@pytest.mark.parametrize("kind", ["place", "organisation", "product", "event", "vehicle"])
def test_a_near_name_makes_a_possible_twin_and_no_link(kind: EntityType) -> None:
    talk = talk_with(ALLIANZ)
    talk.say("Allianz Arena", "Deutsches Museum", kind=kind)
    _, link = talk.say("the Bayern stadium", kind=kind)
    arena = talk.entity("Allianz Arena").entity_id
    assert (link.step, link.compared, link.reason) == ("new", (arena,), NEAR)
    assert talk.entity("the Bayern stadium").possible_twins == (arena,)
    talk = talk_with(ALLIANZ)  # in one turn
    *_, link = talk.say("Allianz Arena", "the Bayern stadium", kind=kind)
    assert (link.compared, link.reason) == ((talk.entity("Allianz Arena").entity_id,), NEAR)


def test_a_name_that_is_far_or_below_the_threshold_is_just_new() -> None:
    for floor, name in ((0.8, "Deutsches Museum"), (0.999, "Bayern stadium")):
        talk = talk_with(ALLIANZ, floor)
        talk.say("Allianz Arena", kind="place")
        _, link = talk.say(name, kind="place")
        assert (link.step, link.compared, link.reason) == ("new", (), None)


def test_names_of_two_types_or_with_other_numbers_are_two_things() -> None:
    talk = talk_with(ALLIANZ)
    talk.say("Allianz Arena", kind="organisation")
    assert talk.say("Bayern stadium", kind="place")[1].compared == ()
    near = (("iPhone 14", ARENA), ("iPhone 15", ARENA), ("Apple phone 14", STADIUM))
    talk = talk_with(near)
    talk.say("iPhone 14", kind="product")
    assert talk.say("iPhone 15", kind="product")[1].compared == ()
    assert talk.say("Apple phone 14", kind="product")[1].compared == (talk.entity("iPhone 14").entity_id,)


def test_the_steps_before_it_go_first() -> None:
    talk = talk_with((("Copenhagen", ARENA), ("Copenhagn", ARENA), ("Kopenhagen", ARENA)))
    talk.say("Copenhagen", kind="place")
    for name, step in (("COPENHAGEN", "exact"), ("Copenhagn", "new")):
        link = talk.say(name, kind="place")[1]
        assert (link.step, link.reason == NEAR) == (step, False)
    assert talk.say("Kopenhagen", kind="place")[1].reason == NEAR


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("Allianz Arena", "place", True),
        ("the Book Club", "other", True),
        ("Ana", "person", False),
        ("Rex", "animal", False),
        ("Ana", "other", False),
        ("Ana", "product", True),
        ("my dog", "other", False),
        ("my dog Milky Way", "other", False),
        ("Cambridge from the map", "place", False),
    ],
)
def test_names_of_beings_mean_nothing(name: str, kind: EntityType, expected: bool) -> None:
    spoken = read_name(name)
    assert spoken is not None
    assert has_meaning(spoken, kind) is expected


def facts_naming(names: Sequence[str], kind: EntityType = "place") -> list[ExtractedFact]:
    groups = [names[start : start + MAX_ENTITIES] for start in range(0, len(names), MAX_ENTITIES)]
    return [
        ExtractedFact(
            text="It is so.",
            excerpt="so",
            search_text="It is so.",
            entities=tuple(NamedEntity(name=name, type=kind) for name in group),
        )
        for group in groups
    ]


def test_each_name_is_embedded_once_without_its_article_and_a_few_of_many() -> None:
    assert names_to_embed(facts_naming(["the Louvre", "Louvre", "Bern", "who"])) == {"louvre": "Louvre", "bern": "Bern"}
    assert names_to_embed(facts_naming(["Ana", "Tom"], "person")) == {}
    names = [f"Place {number}" for number in range(500)]
    assert list(names_to_embed(facts_naming(names)).values()) == names[:MAX_NAME_VECTORS]


def test_the_vector_of_a_name_is_told_where_the_name_is() -> None:
    talk = talk_with(ALLIANZ)
    talk.say("Allianz Arena", "Tom", kind="place")
    talk.say("Tom", kind="person")
    told = [(alias.text, alias.vector) for entity in talk.known.values() for alias in entity.aliases]
    assert [text for text, given in told if given is not None] == ["Allianz Arena"]
    assert isinstance(dict(told)["Allianz Arena"], Vector)
