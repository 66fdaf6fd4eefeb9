"""Runs 0005_projections_quality.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0005"
down_revision = "0004"
upgrade, downgrade = sql_revision("0005_projections_quality.sql")
