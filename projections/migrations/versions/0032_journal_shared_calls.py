"""Runs 0032_journal_shared_calls.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0032"
down_revision = "0031"
upgrade, downgrade = sql_revision("0032_journal_shared_calls.sql")
