"""Runs 0017_journal_indexed_recall.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0017"
down_revision = "0016"
upgrade, downgrade = sql_revision("0017_journal_indexed_recall.sql")
