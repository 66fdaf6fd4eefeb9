"""Runs 0046_projections_plain_names.sql."""

from mnemolog.projections.migrations.revision import sql_revision

revision = "0046"
down_revision = "0045"
upgrade, downgrade = sql_revision("0046_projections_plain_names.sql")
