-- name: insert
-- A new key.
INSERT INTO mnemolog_journal.api_keys (
    key_id, name, tenant, users, rights, digest, created_at, expires_at, revoked_at
) VALUES (
    %(key_id)s, %(name)s, %(tenant)s, %(users)s, %(rights)s, %(digest)s, %(created_at)s, %(expires_at)s, %(revoked_at)s
);

-- name: find
-- The key of an id, which is a part of the text of the key.
SELECT key_id, name, tenant, users, rights, digest, created_at, expires_at, revoked_at
FROM mnemolog_journal.api_keys
WHERE key_id = %(key_id)s;

-- name: list
-- All keys, the oldest first.
SELECT key_id, name, tenant, users, rights, digest, created_at, expires_at, revoked_at
FROM mnemolog_journal.api_keys
ORDER BY created_at, key_id;

-- name: revoke
-- Ends a key at a time, unless it was revoked before.
UPDATE mnemolog_journal.api_keys SET revoked_at = %(at)s
WHERE key_id = %(key_id)s AND revoked_at IS NULL;

-- name: expire
-- Has a key end at a time, unless it ends earlier.
UPDATE mnemolog_journal.api_keys SET expires_at = least(expires_at, %(at)s)
WHERE key_id = %(key_id)s;
