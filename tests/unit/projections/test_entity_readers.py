"""Each query that reads entities or names of them is checked to hide names, or it is explained why it shows none."""

import re
from itertools import chain
from pathlib import Path
from typing import Final

from mnemolog.projections import sql
from tests.support.cases.entity_readers import CHECKED, EXPLAINED

ROOT: Final = Path(__file__).parents[3]
TABLES: Final = (
    r"entities|entity_aliases|entity_changes|fact_entities|relationships|relationship_evidence|merge_proposals"
    r"|current_entity_\w+|shown_entit\w+|(?:shown_)?relations_of_scope|summary_of_entity"
)
READS: Final = re.compile(rf"\b(?:FROM|JOIN|INTO|UPDATE|LATERAL)\s+(?:mnemolog\.)?({TABLES})\b")
UNSHOWN: Final = frozenset({"entity_aliases", "current_entity_names", "current_entity_twins", "relations_of_scope"})


def reads() -> dict[str, set[str]]:
    """What each query reads of entities, by its file and name."""
    found = {}
    for file in sorted(Path(sql.__file__).parent.glob("*.sql")):
        for query in file.read_text().split("-- name: ")[1:]:
            name, _, text = query.partition("\n")
            if tables := set(READS.findall(re.sub("--.*", "", text))):
                found[f"{file.stem}.{name}"] = tables
    return found


def test_every_query_is_checked_or_explained() -> None:
    checked = set(chain.from_iterable(CHECKED.values()))
    assert reads().keys() == checked | EXPLAINED.keys()
    assert not checked & EXPLAINED.keys()


def test_no_query_stands_in_the_code() -> None:
    product = chain.from_iterable((ROOT / name).rglob("*.py") for name in ("projections", "streams", "mnemolog"))
    assert [str(path) for path in product if READS.search(path.read_text())] == []


def test_a_checked_query_reads_what_is_shown() -> None:
    """The user's mark and ids are read from where all names are; whoever is named is read from what is shown."""
    for name in chain.from_iterable(CHECKED.values()):
        tables = reads()[name]
        assert any(table.startswith("shown_") or table in ("merge_proposals", "entity_changes") for table in tables), (
            name
        )
        assert not tables & UNSHOWN or tables & {"shown_entities", "shown_entity_names"}, name
