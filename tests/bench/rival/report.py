"""A comparison as text: in Markdown for the page, and the same for the screen."""

from tests.bench.markdown import table
from tests.bench.ratios import ratio_table
from tests.bench.rival.comparison import Comparison, Side, ratios

PROCESSES = ("client", "worker", "kafka", "postgres", "model")


def report(both: Comparison) -> str:
    ours, theirs = both.ours, both.theirs
    return f"""\
Measured by `make bench-rival` on {both.at:%Y-%m-%d %H:%M} UTC: {both.machine}, load average before it {both.load:.1f}.
{both.rival} has its documented set-up for Postgres and otherwise its own defaults, with telemetry off. Both sides
have the same Postgres, model server ({both.model_seconds * 1000:g} ms a completion), turns and {both.users} users, in
the same run, {both.seconds:g} s each.

{ratio_table("Mnemolog", "mem0", ratios(both))}

CPU is that of the calling process, the workers, Kafka and Postgres. How each side is called was chosen by short trials,
as what stored most: smart stores by {ours.smart.how} and {theirs.smart.how}; raw stores by {ours.raw.how} and
{theirs.raw.how}. Searches run one after another in {both.facts} memories of users with 100 each, with the embedding of
the query, for 10 hits.

CPU ms a store, by process:

{table(("", *PROCESSES), [*_cpu("Mnemolog", ours), *_cpu("mem0", theirs)])}
"""


def _cpu(name: str, side: Side) -> list[tuple[str, ...]]:
    return [
        (f"{name}, {kind}", *(f"{one.cpu[process]:.1f}" if process in one.cpu else "" for process in PROCESSES))
        for kind, one in (("smart", side.smart), ("raw", side.raw))
    ]
