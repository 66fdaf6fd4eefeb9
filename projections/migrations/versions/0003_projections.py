"""Runs 0003_projections_decisions.sql."""

from mnemolog.projections.migrations.revision import refuse_downgrade, run_sql_file

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_sql_file("0003_projections_decisions.sql")


def downgrade() -> None:
    refuse_downgrade(revision)
