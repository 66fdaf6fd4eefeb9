"""Runs 0024_projections_words.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0024"
down_revision = "0023"
upgrade, downgrade = sql_revision("0024_projections_words.sql")
