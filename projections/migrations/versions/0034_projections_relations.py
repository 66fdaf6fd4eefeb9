"""Runs 0034_projections_relations.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0034"
down_revision = "0033"
upgrade, downgrade = sql_revision("0034_projections_relations.sql")
