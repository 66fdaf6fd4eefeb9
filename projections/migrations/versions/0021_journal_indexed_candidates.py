"""Runs 0021_journal_indexed_candidates.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0021"
down_revision = "0020"
upgrade, downgrade = sql_revision("0021_journal_indexed_candidates.sql")
