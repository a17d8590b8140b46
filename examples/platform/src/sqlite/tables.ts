// A payout and the work that it causes are one transaction: see ../payout-ledger.ts.
export const payoutTables = `
  CREATE TABLE IF NOT EXISTS payouts (
    idempotency_key  TEXT NOT NULL UNIQUE,
    business_id      TEXT NOT NULL,
    iban             TEXT NOT NULL,
    bic              TEXT NOT NULL,
    beneficiary_name TEXT NOT NULL,
    reference        TEXT,
    instruction      TEXT NOT NULL,
    status           TEXT NOT NULL CHECK (status IN ('accepted', 'executed', 'failed')),
    status_reason    TEXT,
    created_at       INTEGER NOT NULL,
    settled_at       INTEGER
  ) STRICT;
  CREATE TABLE IF NOT EXISTS outbox (
    id              INTEGER PRIMARY KEY,
    task            TEXT NOT NULL CHECK (task IN ('transfer', 'confirmation')),
    idempotency_key TEXT NOT NULL REFERENCES payouts (idempotency_key),
    state           TEXT NOT NULL CHECK (state IN ('due', 'done', 'dead')),
    attempts        INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    last_error      TEXT,
    UNIQUE (idempotency_key, task)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS outbox_due ON outbox (task, due_at) WHERE state = 'due';
`;

// An event and what it changes are one transaction: see ../party-ledger.ts. The service may send statuses that nobody knows yet.
export const partyTables = `
  CREATE TABLE IF NOT EXISTS webhook_events (
    event_id TEXT NOT NULL UNIQUE,
    type     TEXT NOT NULL,
    applied  INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS buyers (
    id         TEXT NOT NULL PRIMARY KEY,
    status     TEXT NOT NULL,
    changed_at TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS sellers (
    id         TEXT NOT NULL PRIMARY KEY,
    status     TEXT NOT NULL,
    changed_at TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS payment_requests (
    id        TEXT NOT NULL PRIMARY KEY,
    status    TEXT NOT NULL CHECK (status IN ('PENDING_REPAYMENT', 'CLOSED')),
    reminders INTEGER NOT NULL
  ) STRICT;
`;
