"""Parts of the lock files: some packages and what those require, with their hashes, for an image and for `make`.

What a package requires is read from its installed metadata, so it has to be installed from that lock.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==.*(?:\n[ ]+.*)*\n?", re.MULTILINE)


def runtime_lock() -> str:
    """What a worker with either provider needs: the core and all extras but `embedded`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return lock_subset([*project["dependencies"], *extras["server"], *extras["offline"], *extras["openai"]])


def build_lock() -> str:
    """What builds the wheel."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    return lock_subset(build["requires"])


def uv_lock() -> str:
    """What scripts/install.py installs first."""
    return lock_subset(["uv"], "requirements-dev.lock")


def jars_lock() -> str:
    """What scripts/install.py needs to fetch Kafka's jars while other packages are installed."""
    return lock_subset(["jgo", "platformdirs", "pydantic"])


def lock_subset(wanted: Iterable[str], file: str = "requirements.lock") -> str:
    """The pins of `wanted` and of all they require, word for word as `file` has them."""
    needed = required_packages(Requirement(text) for text in wanted)
    lock = (ROOT / file).read_text(encoding="utf-8")
    return "".join(pin[0] for pin in _PIN.finditer(lock) if canonicalize_name(pin["name"]) in needed)


def required_packages(wanted: Iterable[Requirement]) -> set[NormalizedName]:
    """Every package that installing `wanted` can bring, on any platform."""
    pending = [(canonicalize_name(one.name), frozenset(one.extras)) for one in wanted]
    seen = set(pending)
    while pending:
        for one in _required(*pending.pop()):
            key = (canonicalize_name(one.name), frozenset(one.extras))
            if key not in seen:
                seen.add(key)
                pending.append(key)
    return {name for name, _ in seen}


def _required(name: NormalizedName, extras: frozenset[str]) -> Iterator[Requirement]:
    try:
        texts = requires(name) or []
    except PackageNotFoundError:
        return  # for another platform: pinned in the lock with a marker, or not at all
    for one in map(Requirement, texts):
        if "extra" not in str(one.marker or "") or any(
            one.marker.evaluate({"extra": extra}) for extra in extras if one.marker
        ):
            yield one
