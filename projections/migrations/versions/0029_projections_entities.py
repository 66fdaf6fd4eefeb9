"""Runs 0029_projections_entities.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0029"
down_revision = "0028"
upgrade, downgrade = sql_revision("0029_projections_entities.sql")
