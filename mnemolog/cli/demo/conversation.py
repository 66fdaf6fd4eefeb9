"""The conversation of the demonstration: three people, one week, one invalid record."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from importlib.resources import files

import orjson

LAST_DAY = date(2026, 3, 7)


def shifted_records(last_day: date) -> Iterator[bytes]:
    """The records to publish, in their order, moved in time so that the last ones are of `last_day`.

    One line is not JSON, as of a client that was cut off while writing; it stays as it is.
    """
    shift = timedelta(days=(last_day - LAST_DAY).days)
    text = files("mnemolog.cli.demo").joinpath("conversation.jsonl").read_bytes()
    for line in text.splitlines():
        try:
            turn = orjson.loads(line)
        except orjson.JSONDecodeError:
            yield line
        else:
            moved = datetime.fromisoformat(turn["occurred_at"]) + shift
            yield orjson.dumps({**turn, "occurred_at": moved.isoformat()})
