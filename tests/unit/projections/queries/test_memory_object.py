"""The fields of a fact under the names of other memory layers."""

import dataclasses
from datetime import UTC, datetime, timedelta, timezone

import pytest

from mnemolog.projections.queries.results import Fact, structured_attributes
from tests.support.builders.hits import known_fact

AT = datetime(2025, 3, 12, 12, 34, 56, tzinfo=UTC)
FACT = known_fact("Alice lives in Bern.", "identity", true_from=AT, state_since=AT + timedelta(days=1))


def test_the_example_of_the_page() -> None:
    assert structured_attributes(AT) == {
        "day": 12,
        "month": 3,
        "year": 2025,
        "hour": 12,
        "minute": 34,
        "day_of_week": "wednesday",
        "is_weekend": False,
        "quarter": 1,
        "week_of_year": 11,
    }


@pytest.mark.parametrize(
    ("moment", "parts"),
    [
        ("2025-03-12T00:30:00+02:00", {"day": 11, "hour": 22, "minute": 30, "day_of_week": "tuesday"}),
        ("2024-12-30T00:00:00+00:00", {"year": 2024, "week_of_year": 1, "quarter": 4, "day_of_week": "monday"}),
        ("2027-01-01T00:00:00+00:00", {"year": 2027, "week_of_year": 53, "quarter": 1, "is_weekend": False}),
        ("2026-11-21T23:59:59+00:00", {"day_of_week": "saturday", "is_weekend": True}),
        ("2026-11-22T23:59:59+00:00", {"day_of_week": "sunday", "is_weekend": True}),
        ("2026-11-23T00:00:00+00:00", {"day_of_week": "monday", "is_weekend": False}),
    ],
)
def test_parts_of_a_time_are_those_of_utc_and_of_iso_weeks(moment: str, parts: dict[str, object]) -> None:
    assert structured_attributes(datetime.fromisoformat(moment)).items() >= parts.items()


def test_quarters_begin_in_january_april_july_and_october() -> None:
    quarters = [structured_attributes(AT.replace(day=1, month=month))["quarter"] for month in range(1, 13)]
    assert quarters == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]


def test_a_fact_has_all_its_fields_and_those_of_a_memory_object() -> None:
    found = FACT.to_dict(score=0.85)
    names = "id memory user_id agent_id app_id run_id metadata categories created_at updated_at structured_attributes"
    assert {*names.split(), "score", *(field.name for field in dataclasses.fields(Fact))} == found.keys()
    assert (found["id"], found["memory"], found["categories"]) == (FACT.fact_id, "Alice lives in Bern.", ["identity"])
    assert (found["created_at"], found["updated_at"], found["score"]) == (AT, AT + timedelta(days=1), 0.85)
    assert found["structured_attributes"] == structured_attributes(AT.astimezone(timezone(timedelta(hours=13))))
    assert "score" not in FACT.to_dict()
