"""Runs 0016_projections_active.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0016"
down_revision = "0015"
upgrade, downgrade = sql_revision("0016_projections_active.sql")
