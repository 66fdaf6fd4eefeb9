"""Runs 0040_projections_repetitions.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0040"
down_revision = "0039"
upgrade, downgrade = sql_revision("0040_projections_repetitions.sql")
