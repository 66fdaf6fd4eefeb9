"""Runs 0010_projections_overwrites.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0010"
down_revision = "0009"
upgrade, downgrade = sql_revision("0010_projections_overwrites.sql")
