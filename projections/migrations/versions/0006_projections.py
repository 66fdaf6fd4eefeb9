"""Runs 0006_projections_limits.sql."""

from mnemolog.projections.migrations.running import refuse, run

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run("0006_projections_limits.sql")


def downgrade() -> None:
    refuse(revision)
