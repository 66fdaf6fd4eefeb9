"""Ask all questions of the dialogues in every way to search, and measure what each finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from mnemolog.client.search import RERANKED, mean_vector
from mnemolog.client.search_models import SearchModels
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import search
from mnemolog.projections.search.turn_search import search_turns
from mnemolog.streams.llm.ports import Embedder
from mnemolog.streams.text.times import asked_period
from tests.recall.dialogues import Dialogues, Question
from tests.recall.measures import DEEPEST, Measures, measure
from tests.recall.stored import KINDS, Kind, StoredDialogues, user_of
from tests.recall.variations import Variation


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The measures of every question of some dialogues, by the name of the variation, in the order of `questions`."""

    kind: Kind
    questions: Sequence[Question]
    measures: Mapping[str, Sequence[Measures]]


@dataclass(frozen=True, slots=True)
class Asker:
    """Searches in tables that hold the dialogues."""

    dialogues: Dialogues
    stored: StoredDialogues
    embedder: Embedder
    models: SearchModels

    async def measure_all(self, variations: Sequence[Variation]) -> list[Figures]:
        """The figures of facts, without and with excerpts, and those of raw messages."""
        found = []
        for kind in KINDS:
            questions = answerable(self.dialogues, kind)
            measures = {}
            for variation in variations:
                if variation.kind in (None, kind):
                    sources = [await self._sources(question, kind, variation) for question in questions]
                    measures[variation.name] = [
                        measure([self.stored.evidence[source] for source in some], question.evidence)
                        for question, some in zip(questions, sources, strict=True)
                    ]
            found.append(Figures(kind=kind, questions=questions, measures=measures))
        return found

    async def _sources(self, question: Question, kind: Kind, variation: Variation) -> list[str]:
        """The turns that brought the hits, best first: the best fact, the best turn, the second fact and so on."""
        at = self.dialogues.asked_at(question.conversation)
        scope = ScopeFilter(tenant="default", user_id=user_of(kind, question.conversation))
        wordings, fault = await self.models.wordings(question.text, variation.variants)
        _refuse(fault)
        words = "\n".join((question.text, *wordings))
        options = variation.parsed().model_copy(update={"period": asked_period(question.text, at)})
        facts: list[str] = []
        turns: list[str] = []
        if "facts" in variation.include:
            vector = None
            if variation.by_vector:
                vector = mean_vector((await self.embedder.embed([question.text, *wordings])).vectors)
            limit = RERANKED if variation.rerank else options.limit
            async with self.stored.pool.connection() as connection:
                wider = options.model_copy(update={"limit": limit})
                hits = (await search(connection, scope, words, vector, wider, at=at)).hits
            if variation.rerank:
                hits, fault = await self.models.rerank(question.text, hits)
                _refuse(fault)
            facts = [hit.fact.source_id for hit in hits]
        if "turns" in variation.include:
            async with self.stored.pool.connection() as connection:
                found = await search_turns(connection, scope, words, options, at=at)
            turns = [hit.turn_id for hit in found.turns]
        every = chain.from_iterable(zip_longest(facts, turns))
        return [one for one in every if one is not None][:DEEPEST]


def _refuse(fault: str | None) -> None:
    """A search goes on without its model; figures of it may not."""
    if fault is not None:
        raise RuntimeError(fault)


def answerable(dialogues: Dialogues, kind: Kind) -> list[Question]:
    """The questions with the evidence that can be found at all: of facts, the turns that some fact rests on."""
    if kind == "turns":
        return list(dialogues.questions)
    covered = frozenset[str]().union(*(fact.evidence for fact in dialogues.facts))
    found = (question.restricted_to(covered) for question in dialogues.questions)
    return [question for question in found if question.evidence]
