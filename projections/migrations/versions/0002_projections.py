"""Runs 0002_projections.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0002"
down_revision = "0001"
upgrade, downgrade = sql_revision("0002_projections.sql")
