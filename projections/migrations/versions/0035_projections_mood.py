"""Runs 0035_projections_mood.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0035"
down_revision = "0030"
upgrade, downgrade = sql_revision("0035_projections_mood.sql")
