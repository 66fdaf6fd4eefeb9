"""Runs 0002_projections.sql."""

from mnemolog.projections.migrations.running import refuse, run

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run("0002_projections.sql")


def downgrade() -> None:
    refuse(revision)
