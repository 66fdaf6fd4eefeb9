"""What is said of a server that ended."""

import sys
from pathlib import Path

import pytest

from mnemolog.embedded.child import Child, ServerCommand
from mnemolog.errors import ServerFailedError

JAVA = "OpenJDK 64-Bit Server VM warning: Options -Xverify:none were deprecated in JDK 13."
KAFKA = "2026-03-02T12:00:00.000Z [main] WARN org.apache.kafka.storage - The meta.properties are missing"
CAUSE = "2026-03-02T12:00:00.100Z [main] ERROR kafka.Kafka$ - Exiting Kafka due to a full disk"


@pytest.mark.parametrize(
    ("log", "shown"),
    [([JAVA, CAUSE, KAFKA], [CAUSE]), ([CAUSE, "\tat kafka.Kafka"], [CAUSE, "\tat kafka.Kafka"]), ([KAFKA], [KAFKA])],
    ids=["beside a cause", "a trace", "alone"],
)
async def test_warnings_are_shown_only_where_nothing_else_was_said(
    tmp_path: Path, log: list[str], shown: list[str]
) -> None:
    (tmp_path / "log").write_text("\n".join(log))
    command = ServerCommand(
        server="kafka", arguments=[sys.executable, "-c", "exit(1)"], folder=tmp_path, log=tmp_path / "log"
    )
    with pytest.raises(ServerFailedError) as caught:
        await Child(command).wait_until_finished(timeout=10)
    assert caught.value.tail.splitlines() == shown
