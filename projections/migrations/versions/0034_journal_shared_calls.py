"""Runs 0034_journal_shared_calls.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0034"
down_revision = "0035"
upgrade, downgrade = sql_revision("0034_journal_shared_calls.sql")
