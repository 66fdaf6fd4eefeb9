"""Runs 0028_projections_entities.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0028"
down_revision = "0025"
upgrade, downgrade = sql_revision("0028_projections_entities.sql")
