"""Runs 0019_projections_feedback.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0019"
down_revision = "0018"
upgrade, downgrade = sql_revision("0019_projections_feedback.sql")
