"""Runs 0008_projections_sections.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0008"
down_revision = "0007"
upgrade, downgrade = sql_revision("0008_projections_sections.sql")
