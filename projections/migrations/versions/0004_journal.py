"""Runs 0004_journal_limits.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0004"
down_revision = "0003"
upgrade, downgrade = sql_revision("0004_journal_limits.sql")
