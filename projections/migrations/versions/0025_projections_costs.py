"""Runs 0025_projections_costs.sql and 0025_projections_waiting.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0025"
down_revision = "0024"
upgrade, downgrade = sql_revision("0025_projections_costs.sql", "0025_projections_waiting.sql")
