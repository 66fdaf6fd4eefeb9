"""Memory for the tests of an application: no servers, the decisions of the product.

with InMemoryClient() as memory:
    memory.add("I live in Bern.", user_id="alice")
    assert [fact.value for fact in memory.facts(user_id="alice")] == ["Bern"]

pytest finds the fixture `mnemolog_memory`, an `InMemoryClient` of each test.
"""

from mnemolog.testing.memory import AsyncInMemoryClient as AsyncInMemoryClient
from mnemolog.testing.memory import InMemoryClient as InMemoryClient
from mnemolog.testing.stores import NotInMemoryError as NotInMemoryError
