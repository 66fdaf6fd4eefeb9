"""Runs 0007_projections_ordinal.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0007"
down_revision = "0006"
upgrade, downgrade = sql_revision("0007_projections_ordinal.sql")
