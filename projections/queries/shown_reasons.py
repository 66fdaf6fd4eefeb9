"""The reason of a change of entities, without names that readers do not see."""

import re
from collections.abc import Mapping
from typing import Final

HIDDEN: Final = "(hidden)"


def shown_reason(reason: str, names: Mapping[str, bool]) -> str:
    """The reason with `HIDDEN` for each name that is not shown. `names` are all that it may have, and whether they are.

    A name counts as whole words alone, and not as a part of another one: "Ana" is none of "Diana" or "Ana Keller".
    """
    if all(names.values()):
        return reason
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    listed = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
    return listed.sub(lambda found: found[0] if names[found[0]] else HIDDEN, reason)
