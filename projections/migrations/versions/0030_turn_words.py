"""Runs 0030_journal_turn_words.sql and 0030_projections_first_words.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0030"
down_revision = "0029"
upgrade, downgrade = sql_revision("0030_journal_turn_words.sql", "0030_projections_first_words.sql")
