"""Extras: their packages are those of pyproject.toml, and a missing one says what to install."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from mnemolog.cli.app import run
from mnemolog.errors import MissingExtraError
from mnemolog.extras import PACKAGES, require_extras
from mnemolog.streams.llm.factory import build_embedder, build_openai_chat_model
from mnemolog.streams.llm.ports import ProviderConfigurationError
from mnemolog.streams.settings import StreamsSettings

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
IMPORT_NAMES = {"faust_streaming": "faust", "pyjwt": "jwt"}


def import_names(requirements: list[str]) -> set[str]:
    names = (Requirement(text).name.replace("-", "_") for text in requirements)
    return {IMPORT_NAMES.get(name, name) for name in names}


def test_the_packages_of_an_extra_are_those_that_are_declared_and_all_is_every_extra() -> None:
    for extra, packages in PACKAGES.items():
        assert set(packages) == import_names(PROJECT["optional-dependencies"][extra])
    (everything,) = map(Requirement, PROJECT["optional-dependencies"]["all"])
    assert (everything.name, everything.extras) == ("mnemolog", set(PACKAGES))


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    require_extras(*PACKAGES)
    monkeypatch.setattr("mnemolog.extras._is_installed", lambda name: name not in ("faust", "jgo"))
    with pytest.raises(MissingExtraError, match=r"not installed here: faust\. .*pip install 'mnemolog\[server\]'"):
        require_extras("server", "offline")
    with pytest.raises(MissingExtraError, match=r"faust, jgo\. .*pip install 'mnemolog\[embedded,server\]'"):
        require_extras("server", "embedded")


@pytest.mark.parametrize(
    ("command", "settings", "wanted"),
    [
        (["up"], {}, "embedded,offline,server"),
        (["up"], {"KAFKA": "k:1", "POSTGRES": "postgresql://p", "PROVIDER": "openai"}, "openai,server"),
        (["demo"], {"PROVIDER": "openai", "EMBEDDING_PROVIDER": "offline"}, "embedded,offline,openai,server"),
        (["worker"], {}, "offline,server"),
        (["worker", "extract"], {"EMBEDDING_PROVIDER": "openai"}, "offline,server"),
        (["worker", "embed"], {"EMBEDDING_PROVIDER": "openai"}, "openai,server"),
        (["worker", "journal", "project"], {}, "server"),
    ],
)
def test_all_that_a_command_lacks_is_named_at_once(
    command: list[str], settings: dict[str, str], wanted: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for name in ("KAFKA", "POSTGRES", "PROVIDER", "EMBEDDING_PROVIDER"):
        monkeypatch.delenv(f"MNEMOLOG_{name}", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(f"MNEMOLOG_{name}", value)
    monkeypatch.setattr("mnemolog.extras._is_installed", lambda _: False)
    assert run(command) == 2
    assert f"pip install 'mnemolog[{wanted}]'" in " ".join(capsys.readouterr().err.split())


def test_a_provider_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = StreamsSettings(provider="openai")
    monkeypatch.setitem(sys.modules, "openai", None)
    for module in ("openai_models", "openai_client"):
        monkeypatch.delitem(sys.modules, f"mnemolog.streams.llm.{module}", raising=False)
        monkeypatch.delattr(f"mnemolog.streams.llm.{module}", raising=False)
    for build in (build_openai_chat_model, build_embedder):
        with pytest.raises(ProviderConfigurationError, match=r"pip install 'mnemolog\[openai\]'"):
            build(settings)


CORE_ONLY = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {refused}:
            raise ImportError(name)
sys.meta_path.insert(0, Refused())
import mnemolog.admin, mnemolog.client.async_client, mnemolog.client.sync_client, mnemolog.client.turn_files
import mnemolog.cli.app
import mnemolog.streams.runtime.dry_run, mnemolog.streams.llm.factory
"""


def test_client_command_line_and_administration_import_no_package_of_an_extra() -> None:
    refused = {name for names in PACKAGES.values() for name in names}
    subprocess.run([sys.executable, "-c", CORE_ONLY.format(refused=refused)], check=True)
