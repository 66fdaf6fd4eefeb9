"""Runs 0028_projections_merged_turns.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0028"
down_revision = "0027"
upgrade, downgrade = sql_revision("0028_projections_merged_turns.sql")
