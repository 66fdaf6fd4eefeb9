"""Runs 0045_projections_background.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0045"
down_revision = "0044"
upgrade, downgrade = sql_revision("0045_projections_background.sql")
