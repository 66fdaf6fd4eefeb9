"""Runs 0001_journal.sql."""

from mnemolog.projections.migrations.running import refuse, run

revision = "0001"
down_revision = None


def upgrade() -> None:
    run("0001_journal.sql")


def downgrade() -> None:
    refuse(revision)
