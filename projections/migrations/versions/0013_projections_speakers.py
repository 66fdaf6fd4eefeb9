"""Runs 0013_projections_speakers.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0013"
down_revision = "0012"
upgrade, downgrade = sql_revision("0013_projections_speakers.sql")
