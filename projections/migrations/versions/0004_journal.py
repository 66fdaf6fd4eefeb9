"""Runs 0004_journal_limits.sql."""

from mnemolog.projections.migrations.revision import refuse_downgrade, run_sql_file

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_sql_file("0004_journal_limits.sql")


def downgrade() -> None:
    refuse_downgrade(revision)
