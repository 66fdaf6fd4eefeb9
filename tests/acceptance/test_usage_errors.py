"""An error is one line that says what is wrong and one that says what to do; each kind has its exit code."""

import socket

import pytest

from tests.support.harnesses.command_line import CommandLine, InProcessCommandLine, server_settings, turn_json

NOBODY = "127.0.0.1:9"
SERVING = ("up", "worker", "demo")
"""Commands that end their process: these run in one of their own, and show the exit codes of the program itself."""
AWAY = {"KAFKA": NOBODY, "POSTGRES": f"postgresql://mnemolog@{NOBODY}/x"}


NO_KEY = "needs a key: set MNEMOLOG_API_KEY or OPENAI_API_KEY"
OF_A_FACT = ("facts", "--user", "mira")


@pytest.mark.parametrize(
    ("arguments", "settings", "code", "words"),
    [
        (OF_A_FACT, {}, 2, ".mnemolog` runs one; MNEMOLOG_DATA_DIR names another folder"),
        (OF_A_FACT, AWAY, 3, f"Postgres at {NOBODY} cannot be reached"),
        (("audit",), AWAY, 3, "start it, or correct MNEMOLOG_POSTGRES"),
        (("status",), AWAY, 3, ""),
        (("status",), {}, 2, "no stack runs over"),
        (("dead-letters",), AWAY, 3, f"Kafka at {NOBODY} cannot be reached"),
        (("add", "I live in Bern.", "--user", "mira"), AWAY, 3, "correct MNEMOLOG_KAFKA"),
        (("add", "I live in Bern."), AWAY, 2, "give --user or --agent"),
        (("add", "I live in Bern.", "--user", "mira", "--wait", "-1"), AWAY, 2, "--wait"),
        (("publish", "-"), AWAY, 3, "correct MNEMOLOG_KAFKA"),
        (("up",), AWAY, 3, f"Kafka at {NOBODY} cannot be reached"),
        (("publish", "no-such-file"), AWAY, 2, "no-such-file"),
        (("facts",), AWAY, 2, "name --user or --agent"),
        ((*OF_A_FACT, "--tenant", "*"), AWAY, 2, "tenant: '*' stands for"),
        (("worker", "extrct"), AWAY, 2, "extrct is not a stage"),
        (("fact",), {}, 2, "fact"),
        (("settings",), {"PARTITIONS": "many"}, 2, "MNEMOLOG_PARTITIONS"),
        (("settings",), {"CATEGORIES": "hobby"}, 2, "MNEMOLOG_CATEGORIES is not valid JSON"),
        (("settings",), {"TENANT": "a/b"}, 2, "MNEMOLOG_TENANT: a tenant has no '/'"),
        (("settings",), {"CONFLICT_THRESHOLD": "0.9", "DUPLICATE_THRESHOLD": "0.8"}, 2,
         "error: MNEMOLOG_CONFLICT_THRESHOLD must not be above"),
        (("settings",), {"PROVIDER": "gpt"}, 2, "MNEMOLOG_PROVIDER: Input should be 'offline' or 'openai'"),
        (("settings",), {"BASE_URL": "localhost:11434"}, 2, "MNEMOLOG_BASE_URL: 'localhost:11434' is no URL of a"),
        (("settings",), {"BASE_URL": "http://a:b@localhost"}, 2, "MNEMOLOG_BASE_URL: a name or a password in the URL"),
        (("settings",), {"BASE_URL": "http:///v1"}, 2, "write it like http://localhost:11434/v1"),
        (("topics",), {"POSTGRES": "sqlite://x"}, 2, "MNEMOLOG_POSTGRES is not a valid database URL"),
        (("topics",), {"KAFKA": "localhost"}, 2, "write host:port"),
        (("up",), {"PROVIDER": "openai"}, 2, NO_KEY),
        (("up",), {"EMBEDDING_PROVIDER": "openai"}, 2, NO_KEY),
        (("demo",), {"PROVIDER": "openai"}, 2, NO_KEY),
        (("up", "--data", "/dev/null"), {}, 1, "/dev/null cannot be used as a data folder"),
    ],
)  # fmt: skip
def test_a_wrong_use_is_explained(
    empty_shell: CommandLine, arguments: tuple[str, ...], settings: dict[str, str], code: int, words: str
) -> None:
    command_line = CommandLine if arguments[0] in SERVING else InProcessCommandLine
    shell = command_line(folder=empty_shell.folder, settings=settings)
    done = shell.run(*arguments, stdin=turn_json("t-1", "I live in Bern."))
    assert done.code == code, done
    said = "".join(done.stderr.replace("│", " ").split())  # a long path may be broken anywhere
    assert "".join(words.split()) in said
    assert "Traceback" not in done.stderr
    assert done.stdout == "" or arguments == ("status",)  # which shows what it cannot reach
    assert not (empty_shell.folder / ".mnemolog").exists()  # nothing was started


def test_a_taken_port_for_metrics_is_named_before_anything_starts(empty_shell: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CommandLine(folder=empty_shell.folder, settings={"METRICS_PORT": str(port)}).run("up")
    assert done.code == 2
    assert f"metrics cannot be served on 127.0.0.1:{port} (Address already in use)" in " ".join(done.stderr.split())
    assert list(empty_shell.folder.iterdir()) == []


def test_a_traceback_is_for_debugging(empty_shell: CommandLine) -> None:
    shell = InProcessCommandLine(folder=empty_shell.folder, settings={**AWAY, "LOG_LEVEL": "debug"})
    assert "Traceback" in shell.run("facts", "--user", "mira").stderr


@pytest.mark.kafka
@pytest.mark.postgres
def test_a_database_without_tables_says_migrate(
    bootstrap: str, database_without_tables: str, empty_shell: CommandLine
) -> None:
    settings = server_settings(bootstrap, database_without_tables)
    shell = InProcessCommandLine(folder=empty_shell.folder, settings=settings)
    done = shell.run("facts", "--user", "mira")
    assert (done.code, "mnemolog migrate" in done.stderr) == (2, True), done
    worker = CommandLine(folder=empty_shell.folder, settings=settings).run("worker", seconds=60)
    assert (worker.code, "mnemolog migrate" in worker.stderr) == (2, True), worker
    assert shell.run("migrate").code == 0
    assert shell.json("facts", "--user", "mira") == []


@pytest.mark.kafka
@pytest.mark.postgres
def test_other_partitions_than_the_topics_have_are_refused(shell: CommandLine) -> None:
    other = CommandLine(folder=shell.folder, settings={**shell.settings, "PARTITIONS": "3"})
    done = other.run("up")
    assert done.code == 2
    assert "3 partitions are set" in done.stderr
