"""Runs 0027_projections_conversation.sql and 0027_journal_conversation.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0027"
down_revision = "0026"
upgrade, downgrade = sql_revision("0027_projections_conversation.sql", "0027_journal_conversation.sql")
