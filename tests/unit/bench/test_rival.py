import subprocess
import sys
from pathlib import Path

from tests.bench.rival import mem0_client

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


def test_mem0_reaches_loopback_alone() -> None:
    program = str(Path(mem0_client.__file__))
    done = subprocess.run([sys.executable, "-c", CONNECT, program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "mem0 connects to 192.0.2.1: only loopback is allowed",
        "mem0 looks up a.invalid: only loopback is allowed",
    ]
