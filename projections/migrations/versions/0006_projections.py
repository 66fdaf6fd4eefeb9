"""Runs 0006_projections_limits.sql."""

from mnemolog.projections.migrations.revision import refuse_downgrade, run_sql_file

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run_sql_file("0006_projections_limits.sql")


def downgrade() -> None:
    refuse_downgrade(revision)
