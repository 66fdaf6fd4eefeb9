"""Runs 0020_projections_readers.sql and 0020_journal_readers.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0020"
down_revision = "0019"
upgrade, downgrade = sql_revision("0020_projections_readers.sql", "0020_journal_readers.sql")
