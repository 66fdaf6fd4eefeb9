"""Runs 0003_projections_decisions.sql."""

from mnemolog.projections.migrations.running import refuse, run

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run("0003_projections_decisions.sql")


def downgrade() -> None:
    refuse(revision)
