"""Runs 0007_projections_ordinal.sql."""

from mnemolog.projections.migrations.revision import refuse_downgrade, run_sql_file

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_sql_file("0007_projections_ordinal.sql")


def downgrade() -> None:
    refuse_downgrade(revision)
