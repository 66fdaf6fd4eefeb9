"""Runs 0001_journal.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0001"
down_revision = None
upgrade, downgrade = sql_revision("0001_journal.sql")
