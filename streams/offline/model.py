"""A chat model without a model: answers the two prompts by rules, in the very format a language model must keep."""

import orjson

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.llm.errors import PromptRefusedError
from mnemolog.streams.llm.ports import ExtractionTask, NumberedConflicts, Prompt, Reply
from mnemolog.streams.offline.comparison.updates import Judgement, judge
from mnemolog.streams.offline.reading import read_turn

MAX_FACTS = 100
_OWN_FIELDS = frozenset({"importance"})  # follows from importance_category; a reply does not carry it


class RuleModel:
    """Reads English statements; the same prompt gives the same reply, at no cost. It needs no closing."""

    @property
    def model(self) -> str:
        return "rules-1"

    async def complete(self, prompt: Prompt) -> Reply:
        """As `ChatModel`; a prompt for another model is refused."""
        if prompt.model not in (None, self.model):
            detail = (
                f"the offline provider has no model but {self.model}: leave chat_model out, or use another provider"
            )
            raise PromptRefusedError("unknown_model", detail)
        match prompt.task:
            case ExtractionTask(turn=turn, categories=categories):
                facts = read_turn(turn)[:MAX_FACTS]
                text = orjson.dumps({"facts": [_stated(fact, categories) for fact in facts]})
            case NumberedConflicts() as conflicts:
                text = orjson.dumps({"decisions": [_decided(judgement) for judgement in judge(conflicts)]})
        return Reply(text=text.decode(), model=self.model)

    async def close(self) -> None:
        return None


def _stated(fact: ExtractedFact, categories: tuple[str, ...]) -> dict[str, object]:
    category = fact.category if fact.category in categories else _fallback(categories)
    return fact.model_dump(mode="json", exclude=set(_OWN_FIELDS)) | {"category": category}


def _fallback(categories: tuple[str, ...]) -> str:
    return "other" if "other" in categories else categories[-1]


def _decided(judgement: Judgement) -> dict[str, object]:
    return {
        "new": judgement.new,
        "reason": judgement.reason,
        "action": judgement.action,
        "known": judgement.known,
        "text": judgement.text,
        "search_text": judgement.search_text,
        "ended_at": judgement.ended_at.isoformat() if judgement.ended_at else None,
    }
