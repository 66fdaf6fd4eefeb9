"""What becomes of a turn that meets a limit before any model is asked: it is rejected, or stored as it is."""

from mnemolog.schemas.envelopes import End, ExtractedFacts
from mnemolog.schemas.policy import BUDGETS, EffectivePolicy, LimitHit
from mnemolog.schemas.turn import Turn
from mnemolog.streams import metrics
from mnemolog.streams.stages.envelope import limit_end


def end_over_limit(hit: LimitHit, rules: EffectivePolicy) -> End | None:
    """How the turn ends here; None where its policy has it stored without a model."""
    if hit.name not in BUDGETS:
        return limit_end(hit)
    metrics.OVER_BUDGET.labels(result=rules.when_spent).inc()
    return limit_end(hit) if rules.when_spent == "reject" else None


def as_raw(turn: Turn, envelope: ExtractedFacts) -> tuple[Turn, ExtractedFacts]:
    """The turn as if it had been published with `infer=False`."""
    raw = {"infer": False}
    return turn.model_copy(update=raw), envelope.model_copy(update=raw)


def raw_note(hit: LimitHit) -> str:
    """What is told of a turn that is stored as it is."""
    return f"{hit}: each message of a user is stored as it is, and no model extracts facts"
