-- name: journal_limits
-- What turns of a tenant with limits are about to use: many workers at once count it before its commit is projected.

CREATE TABLE mnemolog_journal.limit_reservations (
    owner text NOT NULL,
    source_id text NOT NULL,
    attempt integer NOT NULL CHECK (attempt > 0),
    tenant text NOT NULL,
    published_at timestamptz NOT NULL,
    facts integer NOT NULL CHECK (facts >= 0),
    tokens bigint NOT NULL CHECK (tokens >= 0),
    reserved_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner, source_id, attempt)
);
CREATE INDEX limit_reservations_tenant ON mnemolog_journal.limit_reservations (tenant, reserved_at);
COMMENT ON TABLE mnemolog_journal.limit_reservations IS
'A turn that was let through under the limits of its tenant: the facts it adds and the tokens it used. It counts until '
'commits has that attempt of its source, and is removed by a later turn of the tenant.';
