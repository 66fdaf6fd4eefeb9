"""Runs 0036_projections_shown_entities.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0036"
down_revision = "0035"
upgrade, downgrade = sql_revision("0036_projections_shown_entities.sql")
