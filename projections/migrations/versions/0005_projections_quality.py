"""Runs 0005_projections_quality.sql."""

from mnemolog.projections.migrations.revision import refuse_downgrade, run_sql_file

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run_sql_file("0005_projections_quality.sql")


def downgrade() -> None:
    refuse_downgrade(revision)
