"""Runs 0014_journal_indexed_scopes.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0014"
down_revision = "0013"
upgrade, downgrade = sql_revision("0014_journal_indexed_scopes.sql")
