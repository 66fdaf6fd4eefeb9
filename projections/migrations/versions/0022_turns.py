"""Runs 0022_journal_turns.sql and 0022_projections_turns.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0022"
down_revision = "0021"
upgrade, downgrade = sql_revision("0022_journal_turns.sql", "0022_projections_turns.sql")
