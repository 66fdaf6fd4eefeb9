"""Runs 0012_projections_reads.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0012"
down_revision = "0011"
upgrade, downgrade = sql_revision("0012_projections_reads.sql")
