"""Runs 0038_projections_told_types.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0038"
down_revision = "0037"
upgrade, downgrade = sql_revision("0038_projections_told_types.sql")
