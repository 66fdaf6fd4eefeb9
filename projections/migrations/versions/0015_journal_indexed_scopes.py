"""Runs 0015_journal_indexed_scopes.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0015"
down_revision = "0014"
upgrade, downgrade = sql_revision("0015_journal_indexed_scopes.sql")
