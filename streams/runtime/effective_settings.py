"""Thresholds and rules for one turn: its overrides come first, then policies, then the configuration."""

from mnemolog.projections.stores.policies import PolicyStore
from mnemolog.schemas.policy import EffectivePolicy, StoredPolicies
from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.runtime.thresholds import thresholds_for
from mnemolog.streams.settings import StreamsSettings, default_rules


class EffectiveSettings:
    """The thresholds and rules that the stages ask for."""

    def __init__(self, settings: StreamsSettings, policies: PolicyStore) -> None:
        self._settings = settings
        self._policies = policies
        self._rules = default_rules(settings)

    def thresholds_for(self, model: str, overrides: Overrides) -> Thresholds:
        """Those of the turn, or else the configured ones, or else those of the embedding model."""
        settings = self._settings
        configured = Overrides(
            duplicate=settings.duplicate_threshold,
            raw_duplicate=settings.raw_duplicate_threshold,
            conflict=settings.conflict_threshold,
            near_duplicate=settings.near_duplicate_threshold,
            ending=settings.ending_threshold,
        )
        return thresholds_for(model, configured.model_copy(update=overrides.model_dump(exclude_none=True)))

    async def rules_for(self, scope: Scope, overrides: Overrides) -> EffectivePolicy:
        """Those of the turn, or else of the policies of its scope and tenant, or else the configured ones."""
        return (await self._policies.effective_policy(scope, self._rules)).with_overrides(overrides)

    def rules_from(self, policies: StoredPolicies, overrides: Overrides) -> EffectivePolicy:
        """The same, where the policies are known."""
        return policies.overlay(self._rules).with_overrides(overrides)
