"""Runs 0039_projections_told_names.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0039"
down_revision = "0038"
upgrade, downgrade = sql_revision("0039_projections_told_names.sql")
