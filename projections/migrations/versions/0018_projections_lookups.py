"""Runs 0018_projections_lookups.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0018"
down_revision = "0017"
upgrade, downgrade = sql_revision("0018_projections_lookups.sql")
