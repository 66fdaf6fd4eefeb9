"""Runs 0027_projections_merged_turns.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0027"
down_revision = "0026"
upgrade, downgrade = sql_revision("0027_projections_merged_turns.sql")
