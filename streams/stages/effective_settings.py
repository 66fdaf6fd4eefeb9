"""Thresholds and rules for one turn: its overrides come first, then policies, then the configuration.

A similarity of one embedding model means nothing for another, so each known model has thresholds of its own.
"""

from functools import cache, lru_cache
from typing import Final

from mnemolog.common.logs import get_logger
from mnemolog.projections.stores.turns import PolicyStore
from mnemolog.schemas.base import Fraction
from mnemolog.schemas.policy import EffectivePolicy, StoredPolicies
from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.settings import StreamsSettings, default_rules

_log = get_logger(__name__)


class ThresholdDefaults(Thresholds):
    """The thresholds of a known model; `source` says where the numbers come from.

    Above `raw_duplicate` a fact of a raw store is skipped, above `near_duplicate` two facts of one turn are one. The
    similarities are those of search texts; in raw stores these are the plain texts. A search shows a fact that has no
    word in common with the question from the similarity `search` on; `search_source` says where that one comes from.
    """

    source: str
    search: Fraction
    search_source: str


MEMLIB_DEFAULTS: Final = ThresholdDefaults(
    embedding_model="text-embedding-3-small",
    duplicate=0.98,
    raw_duplicate=0.95,
    conflict=0.65,
    near_duplicate=0.85,
    ending=0.40,
    name_twin=0.85,
    source="MemLib, smart store pipeline, made for text-embedding-3-small with 1536 dimensions (`ending` is ours,"
    " `name_twin` its `near_duplicate`, both not measured)",
    search=0.10,
    search_source="mem0's default for this model; not measured here",
)
MINILM_DEFAULTS: Final = ThresholdDefaults(
    embedding_model="all-MiniLM-L6-v2-int8",
    duplicate=0.999,
    raw_duplicate=0.995,
    conflict=0.58,
    near_duplicate=0.98,
    ending=0.35,
    name_twin=0.80,
    source="measured by python -m tests.quality.thresholds on 758 pairs of search texts of the offline provider"
    " (`raw_duplicate`: on 445 pairs of plain texts, `name_twin`: by python -m tests.quality.name_twins)",
    search=0.17,
    search_source="measured by python -m tests.quality.search_floor on 164 questions with their answers",
)
"""MiniLM puts two dates of one appointment at .9985, nearer than most repetitions in other words: only texts that are
nearly equal may be skipped without a question."""

DEFAULTS_BY_MODEL: Final = {known.embedding_model: known for known in (MEMLIB_DEFAULTS, MINILM_DEFAULTS)}


def thresholds_for(model: str, overrides: Overrides, name_twin: float | None = None) -> Thresholds:
    """The thresholds that hold for vectors of `model`, where `overrides` or `name_twin` set no other.

    Of an unknown model those that are not set are MemLib's, which is warned about once a process.
    """
    known = DEFAULTS_BY_MODEL.get(model, MEMLIB_DEFAULTS).model_dump(include=set(Thresholds.model_fields))
    chosen = overrides.model_dump(include=set(known), exclude_none=True)
    chosen |= {} if name_twin is None else {"name_twin": name_twin}
    if model not in DEFAULTS_BY_MODEL and not known.keys() <= chosen.keys() | {"embedding_model"}:
        _warn_unknown_model(model)
    return Thresholds(**known | chosen | {"embedding_model": model})


def search_floor(model: str, configured: float | None = None) -> float:
    """The similarity from which a search shows facts by their vectors of `model` alone; 0 shows all.

    An unknown model gets the lowest known one: it hides little, and may let more through than it should.
    """
    if configured is not None:
        return configured
    known = DEFAULTS_BY_MODEL.get(model)
    return known.search if known else min(one.search for one in DEFAULTS_BY_MODEL.values())


@cache  # once a model
def _warn_unknown_model(model: str) -> None:
    _log.warning("embedding_model_without_thresholds", model=model, used=MEMLIB_DEFAULTS.source)


class EffectiveSettings:
    """The thresholds and rules that the stages ask for."""

    def __init__(self, settings: StreamsSettings, policies: PolicyStore) -> None:
        self._policies = policies
        self._rules = default_rules(settings)
        names = ("duplicate", "raw_duplicate", "conflict", "near_duplicate", "ending")
        self._thresholds = Overrides(**{name: getattr(settings, f"{name}_threshold") for name in names})
        self._name_twin = settings.name_twin_threshold
        # Each stage asks for them, and nearly all turns have the same.
        self.thresholds_for = lru_cache(maxsize=256)(self._thresholds_for)

    def _thresholds_for(self, model: str, overrides: Overrides) -> Thresholds:
        """Those of the turn, or else the configured ones, or else those of the embedding model."""
        chosen = self._thresholds.model_copy(update=overrides.model_dump(exclude_none=True))
        return thresholds_for(model, chosen, self._name_twin)

    async def rules_for(self, scope: Scope, overrides: Overrides) -> EffectivePolicy:
        """Those of the turn, or else of the policies of its scope and tenant, or else the configured ones."""
        return (await self._policies.effective_policy(scope, self._rules)).with_overrides(overrides)

    def rules_from(self, policies: StoredPolicies, overrides: Overrides) -> EffectivePolicy:
        """The same, where the policies are known."""
        return policies.overlay(self._rules).with_overrides(overrides)
