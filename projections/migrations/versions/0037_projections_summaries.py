"""Runs 0037_projections_summaries.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0037"
down_revision = "0036"
upgrade, downgrade = sql_revision("0037_projections_summaries.sql")
