"""Runs 0005_projections_quality.sql."""

from mnemolog.projections.migrations.running import refuse, run

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run("0005_projections_quality.sql")


def downgrade() -> None:
    refuse(revision)
