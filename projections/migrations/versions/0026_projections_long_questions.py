"""Runs 0026_projections_long_questions.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0026"
down_revision = "0025"
upgrade, downgrade = sql_revision("0026_projections_long_questions.sql")
