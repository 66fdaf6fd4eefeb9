"""Times are counted from when they were said, in six languages, and only where they are certain."""

import os
import time
from datetime import UTC, datetime, timedelta, timezone
from time import process_time

import pytest

from mnemolog.streams.text.times import EARLIEST, LATEST, asked_event, asked_period, find_times, noted

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I fell yesterday", "I fell yesterday (2026-03-01)"),
        ("I have an appointment on Friday", "I have an appointment on Friday (2026-03-06)"),
        ("I broke my leg 3 weeks ago", "I broke my leg 3 weeks ago (2026-02-09 to 2026-02-15)"),
        ("I moved in June", "I moved in June (2025-06-01 to 2025-06-30)"),
        ("We met on March 5, 2020", "We met on March 5, 2020 (2020-03-05)"),
        ("I'm away until Friday", "I'm away until Friday (2026-03-06)"),
        ("I start at Bosch in two weeks", "I start at Bosch in two weeks (2026-03-16 to 2026-03-22)"),
        ("My first exam is in two weeks", "My first exam is in two weeks (2026-03-16 to 2026-03-22)"),
        ("I'm running my first race in two weeks", "I'm running my first race in two weeks (2026-03-16 to 2026-03-22)"),
        ("Gestern war ich krank", "Gestern (2026-03-01) war ich krank"),
        ("J'ai déménagé il y a deux semaines", "J'ai déménagé il y a deux semaines (2026-02-16 to 2026-02-22)"),
        ("hace dos días fui al cine", "hace dos días (2026-02-28) fui al cine"),
        ("ieri sono caduta", "ieri (2026-03-01) sono caduta"),
        ("ontem fui ao médico", "ontem (2026-03-01) fui ao médico"),
    ],
)
def test_what_a_time_means_is_noted(text: str, expected: str) -> None:
    assert noted(text, find_times(text, AT)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "I swim on Monday",  # every one, the last or the next?
        *("I swim every Monday", "My birthday is on June 14", "May I ask", "Ich wohne hier", "I live in March"),
        *("First one in 14 years.", "It's my first holiday in 14 years", "The hottest day in ten years"),
        *("I haven't seen her in two years", "I haven't slept in 3 days", "I never smoked in 3 years"),
        *("I lost 20 kilos in three months", "I read 40 books in two years", "the only rain in 3 weeks"),
        *("por la mañana desayuno", "on 31 February 2020", "Guten Morgen"),
    ],
)
def test_what_is_not_certain_is_no_time(text: str) -> None:
    assert find_times(text, AT) == ()


def test_what_starts_in_a_month_that_is_over_starts_next_year() -> None:
    said = datetime(2026, 11, 20, tzinfo=UTC)
    (begin,) = find_times("I work at Bosch starting in March", said)
    assert (begin.role, str(begin.first)) == ("from", "2027-03-01")


@pytest.mark.parametrize(
    ("said", "noted_as"),
    [
        *(
            (f"{said} March", f"{said} March (2026-03-01 to 2026-03-31)")
            for said in ("I work at Acme until the end of", "I live in Rome until", "My exam is in", "My lease ends in")
        ),
        ("I'm away until 3 March", "I'm away until 3 March (2026-03-03)"),
        ("I'm away until February", "I'm away until February (2027-02-01 to 2027-02-28)"),
        *(
            (f"{said} May", f"{said} May ({year}-05-01 to {year}-05-31)")
            for year, states in (
                (2025, ("I was vegan until", "She lived in Rome until", "I didn't smoke until", "Ich war krank bis")),
                (
                    2026,
                    ("I am vegan until", "My visa was extended until", "I was told it lasts until", "I waited until"),
                ),
            )
            for said in states
        ),
        *(
            (f"{said} in May", f"{said} in May (2026-05-01 to 2026-05-31)")
            for said in (
                *("I just signed a lease in Lisbon, moving there", "I've booked a holiday", "We have reserved a hut"),
                *("I bought tickets for a concert", "I got accepted to Yale, classes begin", "I'm not getting married"),
                *("I signed up for a pottery class", "My wedding is", "I got invited to a wedding"),
            )
        ),
        *(
            (f"{said} in May", f"{said} in May (2025-05-01 to 2025-05-31)")
            for said in ("I just moved", "Our wedding was", "We got married", "My class started", "I visited Oslo")
        ),
    ],
)
def test_a_month_is_the_one_that_is_not_over_or_lies_ahead_as_the_words_show(said: str, noted_as: str) -> None:
    assert noted(said, find_times(said, datetime(2026, 3, 3, 9, tzinfo=UTC))) == noted_as


def test_the_zone_is_that_of_the_turn() -> None:
    zone = timezone(timedelta(hours=-8))
    at = datetime(2026, 3, 1, 23, tzinfo=zone)
    (when,) = find_times("I fell yesterday", at)
    assert when.start(at) == datetime(2026, 2, 28, tzinfo=zone)
    assert when.end(at) == datetime(2026, 3, 1, tzinfo=zone)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles", "UTC"])
def test_neither_the_machine_s_zone_nor_its_language_matters(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = find_times("I fell yesterday and go back on Friday, I must", AT)
    assert expected
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", zone)
    monkeypatch.setenv("LC_ALL", "fr_FR.UTF-8")
    time.tzset()
    try:
        assert find_times("I fell yesterday and go back on Friday, I must", AT) == expected
    finally:
        monkeypatch.undo()
        assert os.environ.get("TZ") == before
        time.tzset()


@pytest.mark.parametrize(
    ("said", "noted_as"),
    [
        (
            "I kept bees from January to March 2024.",
            "I kept bees from January to March 2024 (2024-01-01 to 2024-03-31).",
        ),
        ("I was there between 3 and 5 June 2025.", "I was there between 3 and 5 June 2025 (2025-06-03 to 2025-06-05)."),
        ("Ich war von Mai bis Juli 2024 dort.", "Ich war von Mai bis Juli 2024 (2024-05-01 to 2024-07-31) dort."),
        ("from 3 May 2024 to 5 June 2025", "from 3 May 2024 to 5 June 2025 (2024-05-03 to 2025-06-05)"),
        (
            "I was in Rome from 1st to 3rd of May 2025",
            "I was in Rome from 1st to 3rd of May 2025 (2025-05-01 to 2025-05-03)",
        ),
        ("I flew from Berlin to Rome on 3 May 2025", "I flew from Berlin to Rome on 3 May 2025 (2025-05-03)"),
        ("I walked from Rome to March 2024", "I walked from Rome to March 2024 (2024-03-01 to 2024-03-31)"),
        ("I was there 3-5 June 2025.", "I was there 3-5 June 2025 (2025-06-03 to 2025-06-05)."),
        ("I was ill 30 May \u2013 2 June 2025", "I was ill 30 May \u2013 2 June 2025 (2025-05-30 to 2025-06-02)"),
        ("I worked there June to August 2024.", "I worked there June to August 2024 (2024-06-01 to 2024-08-31)."),
        ("I was away 2025-06-03 to 2025-06-05", "I was away 2025-06-03 to 2025-06-05 (2025-06-03 to 2025-06-05)"),
        ("We're away from Monday to Friday.", "We're away from Monday to Friday."),
        ("I was off June 3-5.", "I was off June 3-5."),
        ("I was ill from Saturday to Wednesday.", "I was ill from Saturday to Wednesday."),
        ("I worked Saturday to Monday", "I worked Saturday to Monday"),
    ],
)
def test_a_span_has_both_of_its_ends(said: str, noted_as: str) -> None:
    assert noted(said, find_times(said, datetime(2026, 3, 1, 9, tzinfo=UTC))) == noted_as


# The time that a question asks about

NOW = datetime(2026, 6, 17, 12, tzinfo=UTC)  # a Wednesday


def days(question: str, at: datetime = NOW) -> tuple[str | None, str | None]:
    """Start and end (not included) of the period, by their days; None where it is open."""
    found = asked_period(question, at)
    assert found is not None
    start, end = (None if moment in (EARLIEST, LATEST) else f"{moment:%Y-%m-%d}" for moment in found)
    return start, end


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("Where did I live last summer?", "2025-06-01", "2025-09-01"),
        ("What happened in the summer of 2022?", "2022-06-01", "2022-09-01"),
        ("Where was she last winter?", "2025-12-01", "2026-03-01"),
        ("What do we do next spring?", "2027-03-01", "2027-06-01"),
        ("Wo war ich letzten Winter?", "2025-12-01", "2026-03-01"),
        ("¿Dónde viví el verano pasado?", "2025-06-01", "2025-09-01"),
        ("What did I eat last weekend?", "2026-06-13", "2026-06-15"),
        ("What do we do this weekend?", "2026-06-20", "2026-06-22"),
        ("What did she buy in August?", "2025-08-01", "2025-09-01"),
        ("What did I buy two weeks ago?", "2026-06-01", "2026-06-08"),
        ("Was geschah im März 2024?", "2024-03-01", "2024-04-01"),
        ("What happened on 5 May 2023?", "2023-05-05", "2023-05-06"),
        ("What did he eat yesterday?", "2026-06-16", "2026-06-17"),
        ("Where did I work in 2019?", "2019-01-01", "2020-01-01"),
        ("Who came between 3 June 2023 and 5 July 2023?", "2023-06-03", "2023-07-06"),
        ("Where did I live before 3 June 2023?", None, "2023-06-04"),
        ("What did he do two weeks before 3 June 2023?", "2023-05-20", "2023-06-03"),
        ("Where does he live since March 2024?", "2024-03-01", None),
        ("What happened after 3 June 2023?", "2023-06-03", None),
        ("Where did she move from 4 years ago?", "2022-01-01", "2023-01-01"),
    ],
)
def test_a_time_is_counted_from_when_the_question_is_asked(question: str, start: str | None, end: str | None) -> None:
    assert days(question) == (start, end)


@pytest.mark.parametrize(
    "question",
    [
        *("Where does Alice live?", "When is her birthday?", "Does she deal in real estate?", "Il a été malade ?"),
        *("Did he fall off the ladder?", "Which spring water does he like?", "Who has 2019 points?", ""),
        *("Where was I last w\u0131nter?", "LAST W\u0130NTER", "three w\u0131nters ago"),
    ],
)
def test_a_question_without_a_time_has_none(question: str) -> None:
    assert asked_period(question, NOW) is None


def test_days_are_those_of_the_zone_of_the_question() -> None:
    late = datetime.fromisoformat("2026-06-17T23:30:00-08:00")
    found = asked_period("What did I eat yesterday?", late)
    assert found is not None
    assert found[0] == datetime.fromisoformat("2026-06-16T00:00:00-08:00")


@pytest.mark.parametrize("year", ["0001", "0002", "9998", "9999", "1000"])
def test_the_first_and_the_last_year_are_no_fault(year: str) -> None:
    asked_period(f"in the winter of {year}, on 31 December {year}", NOW)


@pytest.mark.parametrize(
    ("question", "relation", "event"),
    [
        ("Where did I work before I moved to Bern?", "before", "I moved to Bern"),
        ("What did she do after she had left Lisbon?", "after", "she had left Lisbon"),
        ("Wo wohnte ich, bevor ich nach Bern zog?", "before", "ich nach Bern zog"),
        ("Où vivais-je avant de déménager ?", "before", "déménager"),
    ],
)
def test_a_time_may_be_counted_from_an_event(question: str, relation: str, event: str) -> None:
    assert asked_period(question, NOW) is None
    found = asked_event(question)
    assert found is not None
    assert (found.relation, found.words) == (relation, event)


def test_what_was_before_an_event_ends_with_it_and_what_came_after_begins_there() -> None:
    before, after = asked_event("before I moved"), asked_event("after I moved")
    assert before is not None is not after
    assert (before.period_from(NOW), after.period_from(NOW)) == ((EARLIEST, NOW), (NOW, LATEST))
    assert [asked_event(question) for question in ("Where do I live?", "before", "after ?", "")] == [None] * 4


@pytest.mark.parametrize("words", ["in March ", "12 May, ", "last summer ", "before ", "1 ", "x", "the week before "])
def test_hostile_text_is_read_in_bounded_time(words: str) -> None:
    started = process_time()
    asked_period(words * (10_000 // len(words)), NOW)
    asked_event(words * (10_000 // len(words)))
    assert process_time() - started < 1
