"""Which rules hold: the turn's before the scope's before the tenant's before the configured ones."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from mnemolog.projections.stores.turns import PolicyStore
from mnemolog.schemas.command import tenant_scope
from mnemolog.schemas.policy import EffectivePolicy, Limits, Policy
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.settings import StreamsSettings, default_rules
from tests.support.builders.commits import ALICE, BOB, commit, day, policy_set
from tests.support.harnesses.projected_database import ProjectedDatabase


@pytest.mark.postgres
async def test_a_scope_s_policy_comes_before_its_tenant_s_before_the_configured(db: ProjectedDatabase) -> None:
    configured = EffectivePolicy(min_importance=0.2, single_valued=("locker",))
    tenant = Policy(confidence="cautious", high_risk=("health",), limits=Limits(active_facts=100))
    former, scope = Policy(add_only=True, min_importance=0.5), Policy(high_risk=(), limits=Limits(active_facts=10))
    tenants = tenant_scope("default")
    await db.apply(
        commit("p1", policy_set(tenant, level="tenant"), scope=tenants),
        commit("p2", policy_set(former)),
        commit("p3", policy_set(scope), at=day(1)),  # in place of the former
    )
    policies = PolicyStore(db.pool)
    alice = await policies.effective_policy(ALICE, configured)
    assert (alice.min_importance, alice.confidence, alice.high_risk, alice.add_only) == (0.2, "cautious", (), False)
    assert alice.limits == {"tenant": tenant.limits, "scope": scope.limits}
    assert alice.is_single_valued("locker")
    bob = await policies.effective_policy(BOB, configured)
    assert (bob.high_risk, bob.limits) == (("health",), {"tenant": tenant.limits})
    assert await policies.effective_policy(Scope(tenant="acme", user_id="alice"), configured) == configured
    for other in (Scope(user_id="alice", app_id="a"), tenants):
        assert await policies.effective_policy(other, configured) == bob


def test_a_turn_s_own_word_comes_first() -> None:
    rules = EffectivePolicy(add_only=True, confirm_below=0.5, min_importance=0.4)
    assert rules.with_overrides(Overrides()) == rules
    said = rules.with_overrides(Overrides(add_only=False, confidence="cautious", confirm_below=0.0, min_importance=0.0))
    assert said == EffectivePolicy(add_only=False, confidence="cautious", confirm_below=0.0, min_importance=0.0)


def test_what_is_configured_is_the_ground() -> None:
    defaults = default_rules(StreamsSettings(provider="openai"))
    assert defaults == EffectivePolicy(confirm_below=0.9, high_risk=("identity", "health", "finance"))
    offline = replace(defaults, known_entities=0, known_facts=0, call_turns=1)  # the rules read one turn alone
    assert default_rules(StreamsSettings()) == offline
    configured = StreamsSettings(
        provider="openai",
        add_only=True,
        confidence_preset="cautious",
        confirm_below=0.7,
        high_risk=("identity",),
        single_valued_keys=("locker",),
        min_importance=0.3,
    )
    assert default_rules(configured) == EffectivePolicy(
        add_only=True,
        confidence="cautious",
        confirm_below=0.7,
        high_risk=("identity",),
        single_valued=("locker",),
        min_importance=0.3,
    )


def test_an_ending_threshold_above_the_threshold_of_conflicts_is_refused() -> None:
    with pytest.raises(ValidationError, match="MNEMOLOG_ENDING_THRESHOLD must not be above"):
        StreamsSettings(ending_threshold=0.7, conflict_threshold=0.6)
