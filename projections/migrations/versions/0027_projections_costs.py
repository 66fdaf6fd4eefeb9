"""Runs 0027_projections_costs.sql and 0027_projections_waiting.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0027"
down_revision = "0024"
upgrade, downgrade = sql_revision("0027_projections_costs.sql", "0027_projections_waiting.sql")
