"""Runs 0037_projections_current_relations.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0037"
down_revision = "0032"
upgrade, downgrade = sql_revision("0037_projections_current_relations.sql")
