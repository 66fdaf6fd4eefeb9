"""Runs 0043_projections_relations_as_of.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0043"
down_revision = "0041"
upgrade, downgrade = sql_revision("0043_projections_relations_as_of.sql")
