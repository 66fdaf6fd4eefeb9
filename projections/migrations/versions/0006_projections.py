"""Runs 0006_projections_limits.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0006"
down_revision = "0005"
upgrade, downgrade = sql_revision("0006_projections_limits.sql")
