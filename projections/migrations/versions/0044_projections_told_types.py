"""Runs 0044_projections_told_types.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0044"
down_revision = "0043"
upgrade, downgrade = sql_revision("0044_projections_told_types.sql")
