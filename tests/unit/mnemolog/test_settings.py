"""A variable that looks like a misspelt setting is refused; what others set in the environment is not ours."""

from datetime import date
from decimal import Decimal

import pytest

from mnemolog.errors import SettingsError
from mnemolog.settings import PREFIX, Settings, load_settings

KUBERNETES = {
    "MNEMOLOG_SERVICE_HOST": "10.0.0.1", "MNEMOLOG_SERVICE_PORT": "9464", "MNEMOLOG_SERVICE_PORT_METRICS": "9464",
    "MNEMOLOG_PORT": "tcp://10.0.0.1:9464", "MNEMOLOG_PORT_9464_TCP": "tcp://10.0.0.1:9464",
    "MNEMOLOG_PORT_9464_TCP_ADDR": "10.0.0.1", "MNEMOLOG_PORT_9464_TCP_PORT": "9464",
    "MNEMOLOG_PORT_9464_TCP_PROTO": "tcp", "MNEMOLOG_KAFKA_PORT": "tcp://10.0.0.2:9092",
    "MNEMOLOG_KAFKA_SERVICE_HOST": "10.0.0.2", "MNEMOLOG_TENANT_PORT": "tcp://10.0.0.3:80",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PARTITION", "PARTITIONS"),  # one letter missing
        ("PARTITOINS", "PARTITIONS"),  # two letters swapped
        ("PROVDER", "PROVIDER"),
        ("BASE_URLS", "BASE_URL"),
        ("METRIC_PRT", "METRICS_PORT"),  # two letters missing
        ("KAFK", "KAFKA"),
    ],
)
def test_a_near_miss_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, meant: str) -> None:
    monkeypatch.setenv(PREFIX + name, "1")
    with pytest.raises(SettingsError, match=f"{PREFIX}{name} is not a setting: did you mean {PREFIX}{meant}\\?"):
        load_settings()


def test_other_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KUBERNETES, "MNEMOLOG_TEST_DIALOGUES", "MNEMOLOG_CHAOS_ROUNDS", "MNEMOLOG_CI", "MNEMOLOG_KA"):
        monkeypatch.setenv(name, KUBERNETES.get(name, "1"))
    load_settings()


def test_a_setting_is_no_near_miss_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.setenv(PREFIX + name.upper(), "tcp://wrong for most")
    with pytest.raises(SettingsError) as error:
        load_settings()
    assert "is not a setting" not in str(error.value)


def test_a_kubernetes_service_of_the_same_name_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOLOG_METRICS_PORT", "tcp://10.0.0.1:9464")
    with pytest.raises(
        SettingsError, match=r"MNEMOLOG_METRICS_PORT: .*set by Kubernetes.*mnemolog-metrics.*enableServiceLinks: false"
    ):
        load_settings()


def test_an_empty_variable_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, noun in (("COMMAND_TOKEN", "token"), ("TENANT", "value"), ("PARTITIONS", "value")):
        with monkeypatch.context() as patched:
            patched.setenv(PREFIX + name, "")
            with pytest.raises(SettingsError, match=f"^{PREFIX}{name} is empty: unset it, or give a {noun}$"):
                load_settings()


def test_what_was_given_is_not_blamed_on_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOLOG_TENANT", "acme")
    with pytest.raises(SettingsError, match=r"^tenant: '\*' stands for"):
        load_settings(tenant="*")


def test_prices_are_decimal_and_a_wrong_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}PRICES", '[{"model": "m*", "input": 0.1, "output": "0.3", "since": "2026-03-01"}]')
    monkeypatch.setenv(f"{PREFIX}CURRENCY", "EUR")
    (price,) = load_settings().price_table.prices
    assert (price.input, price.output, price.since) == (Decimal("0.1"), Decimal("0.3"), date(2026, 3, 1))
    assert str(load_settings().price_table.cost([])) == "0 EUR"
    monkeypatch.setenv(f"{PREFIX}PRICES", '[{"model": "m*", "input": -1}]')
    with pytest.raises(SettingsError, match="MNEMOLOG_PRICES"):
        load_settings()
