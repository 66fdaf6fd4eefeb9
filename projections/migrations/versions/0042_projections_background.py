"""Runs 0042_projections_background.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0042"
down_revision = "0041"
upgrade, downgrade = sql_revision("0042_projections_background.sql")
