"""What one rule is: a pattern over a plain clause, and the fact that it makes of it."""

import re
from dataclasses import dataclass

from mnemolog.schemas.facts import ActionHint, ImportanceCategory

NAME = r"(?-i:[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,3})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`text`, `key`, `value`, `about` and `whom` are templates over the pattern's groups.

    `text` begins with `{s}` (Alice) or `{p}` (Alice's), and with its subject `whom`. `about` are words for searching.
    A `deniable` rule also reads its denials ("I do not", "I no longer"). A `planned` fact ends where its time ends.
    A `single` key holds one value at a time although no registry names it.
    """

    pattern: re.Pattern[str]
    text: str
    category: str
    importance: ImportanceCategory
    key: str | None
    value: str
    about: str
    hint: ActionHint
    deniable: bool
    planned: bool
    timed: bool
    single: bool = False
    whom: str = "{s}"


def rule(
    pattern: str,
    text: str,
    category: str,
    importance: ImportanceCategory,
    *,
    key: str | None = None,
    value: str = "{v}",
    about: str = "",
    hint: ActionHint = "new",
    deniable: bool = False,
    planned: bool = False,
    timed: bool = False,
    single: bool = False,
    whom: str = "{s}",
) -> Rule:
    """A rule whose pattern must fit the whole clause. `timed`: only where the clause names a time."""
    return Rule(
        pattern=re.compile(rf"^(?:{pattern})$", re.IGNORECASE),
        text=text,
        category=category,
        importance=importance,
        key=key,
        value=value,
        about=about,
        hint=hint,
        deniable=deniable,
        planned=planned,
        timed=timed,
        single=single,
        whom=whom,
    )
