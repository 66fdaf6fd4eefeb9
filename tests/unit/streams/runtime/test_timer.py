"""Whose orders to expire are this worker's: the partition of an owner as producers and consumers have it."""

import pytest
from aiokafka.partitioner import DefaultPartitioner  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.schemas.scope import Scope
from mnemolog.streams.stages.extract import partition_of


@pytest.mark.parametrize("count", [1, 4, 12])
def test_an_owner_has_the_partition_that_a_producer_sends_its_records_to(count: int) -> None:
    partitions = list(range(count))
    scopes = [Scope(user_id=f"user-{number}") for number in range(200)] + [Scope(tenant="acme", agent_id="bot")]
    sent = [DefaultPartitioner()(scope.key, partitions, partitions) for scope in scopes]
    assert [partition_of(scope, count) for scope in scopes] == sent
    assert set(sent) == set(partitions)
