import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.bench.rival import mem0_client
from tests.bench.rival.mem0_client import Tally, Turns, record

CONNECT = """
import runpy, socket, sys
hook = runpy.run_path(sys.argv[1])["refuse_other_hosts"]
sys.addaudithook(hook)
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
def connect():
    with socket.socket() as outside:
        outside.settimeout(1)
        outside.connect(("192.0.2.1", 9))
for attempt in (connect, lambda: socket.getaddrinfo("a.invalid", 9)):
    try:
        attempt()
    except PermissionError as error:
        print(error)
"""


def test_only_loopback_can_be_reached() -> None:
    program = str(Path(mem0_client.__file__))
    done = subprocess.run([sys.executable, "-c", CONNECT, program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "mem0 connects to 192.0.2.1: only loopback is allowed",
        "mem0 looks up a.invalid: only loopback is allowed",
    ]


def test_a_turn_without_a_memory_ends_the_measurement() -> None:
    tally = Tally()
    record(tally, {"results": [{}, {}]})
    tally.called(None, SimpleNamespace(usage=SimpleNamespace(prompt_tokens=30, completion_tokens=4)), None)
    with pytest.raises(RuntimeError, match="no memory"):
        record(tally, {"results": []})
    expected = {"done": 1, "memories": 2, "calls": 1, "prompt_tokens": 30, "reply_tokens": 4, "error": None}
    assert tally.report() == expected


def test_turns_run_until_they_are_stopped_and_never_out(tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    file.write_text("".join(json.dumps({"user_id": f"u{number}"}) + "\n" for number in range(2)))
    turns = Turns(str(file))
    assert [turns.next(), turns.next()] == [{"user_id": "u0"}, {"user_id": "u1"}]
    with pytest.raises(RuntimeError, match="too few"):
        turns.next()
    turns.stopped = True
    assert turns.next() is None
