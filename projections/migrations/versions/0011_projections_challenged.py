"""Runs 0011_projections_challenged.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0011"
down_revision = "0010"
upgrade, downgrade = sql_revision("0011_projections_challenged.sql")
