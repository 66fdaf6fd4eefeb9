"""Runs 0032_projections_relations.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0032"
down_revision = "0036"
upgrade, downgrade = sql_revision("0032_projections_relations.sql")
