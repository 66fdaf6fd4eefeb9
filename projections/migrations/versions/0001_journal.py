"""Runs 0001_journal.sql."""

from mnemolog.projections.migrations.revision import refuse_downgrade, run_sql_file

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_sql_file("0001_journal.sql")


def downgrade() -> None:
    refuse_downgrade(revision)
