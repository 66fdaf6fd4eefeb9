"""The schemas of a rebuild beside the live one."""

from typing import Final

NEXT_SCHEMA: Final = "mnemolog_next"
"""Where the new tables are made."""
OLD_SCHEMA: Final = "mnemolog_old"
"""Where the tables that were live are until they are dropped."""
