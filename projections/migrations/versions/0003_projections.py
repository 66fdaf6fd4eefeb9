"""Runs 0003_projections_decisions.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0003"
down_revision = "0002"
upgrade, downgrade = sql_revision("0003_projections_decisions.sql")
