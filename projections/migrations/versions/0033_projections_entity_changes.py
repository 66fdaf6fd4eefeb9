"""Runs 0033_projections_entity_changes.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0033"
down_revision = "0032"
upgrade, downgrade = sql_revision("0033_projections_entity_changes.sql")
