"""Runs 0004_journal_limits.sql."""

from mnemolog.projections.migrations.running import refuse, run

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run("0004_journal_limits.sql")


def downgrade() -> None:
    refuse(revision)
