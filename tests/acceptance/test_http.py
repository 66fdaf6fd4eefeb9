"""Keys and the HTTP server as a user starts them, and the requests of docs/http.md."""

import re
import subprocess
from datetime import UTC, datetime
from urllib.request import urlopen

import pytest

from tests.support.harnesses.command_line import CommandLine
from tests.support.paths import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def test_keys_are_made_shown_once_rotated_and_revoked(shell: CommandLine) -> None:
    made = shell.json("keys", "create", "team", "--user", "team-7/*", "--right", "read", "--days", "2")
    assert (made["users"], made["rights"], made["tenant"]) == ("team-7/*", ["read"], "default")
    assert made["key"].startswith(f"mnl_{made['key_id']}_")
    left = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert 1 <= left.days <= 2
    new = shell.json("keys", "rotate", "team", "--hours", "0")
    assert (new["users"], new["rights"]) == (made["users"], made["rights"])
    listed = shell.run("keys", "list").stdout
    assert made["key_id"] in listed
    assert "ended" in listed
    assert not {made["key"], new["key"]} & set(listed.split())
    assert shell.run("keys", "revoke", "team").stdout == f"key {new['key_id']} (team) is revoked\n"
    assert shell.run("keys", "revoke", "team").code == 1
    for wrong in (["--user", "a*b"], ["--right", "write"], ["--tenant", "a/b"]):
        assert shell.run("keys", "create", "wrong", *wrong).code == 2


def test_the_requests_of_the_page_work_until_the_server_stops(shell: CommandLine) -> None:
    key = shell.json("keys", "create", "chat", "--user", "alice")["key"]
    page = (ROOT / "docs/http.md").read_text(encoding="utf-8")
    requests = next(block for block in re.findall(r"```console\n(.+?)```", page, re.DOTALL) if "curl" in block)
    own_process = CommandLine(folder=shell.folder, settings=shell.settings)
    refused = own_process.run("serve", "--without-keys", "--host", "0.0.0.0")  # noqa: S104 - that is refused
    assert (refused.code, "make a key" in " ".join(refused.stderr.split())) == (2, True), refused
    with shell.start("serve", "--port", "0") as server:
        url = server.ready_message()["url"]
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", requests.replace("localhost:8464", url)],
            env={**shell.environ, "KEY": key},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout.count("lives in Bern.") >= 2, done.stdout
        with urlopen(f"{url}/health/live") as live:  # noqa: S310 - our own address
            assert live.status == 200
        assert server.terminate() == 0
