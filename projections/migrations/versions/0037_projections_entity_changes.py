"""Runs 0037_projections_entity_changes.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0037"
down_revision = "0036"
upgrade, downgrade = sql_revision("0037_projections_entity_changes.sql")
