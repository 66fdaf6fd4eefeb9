"""Runs 0002_projections.sql."""

from mnemolog.projections.migrations.revision import refuse_downgrade, run_sql_file

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_sql_file("0002_projections.sql")


def downgrade() -> None:
    refuse_downgrade(revision)
