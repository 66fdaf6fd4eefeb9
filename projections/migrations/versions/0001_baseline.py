"""Makes the schemas of the journal and of the projections."""

from mnemolog.projections.migrations.revision import sql_revision
from mnemolog.projections.migrations.upgrade import JOURNAL_FILES, projection_files

revision = "0001"
down_revision = None
upgrade, downgrade = sql_revision("database.sql", *JOURNAL_FILES, *projection_files())
