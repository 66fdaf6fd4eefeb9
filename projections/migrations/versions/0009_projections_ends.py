"""Runs 0009_projections_ends.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0009"
down_revision = "0008"
upgrade, downgrade = sql_revision("0009_projections_ends.sql")
