"""Runs 0023_projections_promotions.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0023"
down_revision = "0022"
upgrade, downgrade = sql_revision("0023_projections_promotions.sql")
