"""Runs 0041_journal_paid_replies.sql and 0041_projections_paid_tokens.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0041"
down_revision = "0040"
upgrade, downgrade = sql_revision("0041_journal_paid_replies.sql", "0041_projections_paid_tokens.sql")
