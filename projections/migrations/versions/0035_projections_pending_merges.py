"""Runs 0035_projections_pending_merges.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0035"
down_revision = "0034"
upgrade, downgrade = sql_revision("0035_projections_pending_merges.sql")
