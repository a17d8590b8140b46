/**
 * An event without webhook_id waits for the batcher. A due_ms means to be sent; a request under way leaves it, so one that died with its
 * process is due again. webhook_stops keeps the due_ms of stopped deliveries. Exchanges hold no credentials; old ones go.
 */
export const deliverySchema = `
  CREATE TABLE IF NOT EXISTS webhook_endpoints (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    url        TEXT NOT NULL,
    username   TEXT NOT NULL,
    password   TEXT NOT NULL,
    secret     TEXT NOT NULL,
    allow_http INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS webhooks (
    webhook_id TEXT PRIMARY KEY,
    body       BLOB NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS webhook_events (
    number      INTEGER PRIMARY KEY,
    event_id    TEXT NOT NULL,
    type        TEXT NOT NULL,
    json        TEXT NOT NULL,
    notified_ms INTEGER NOT NULL,
    webhook_id  TEXT REFERENCES webhooks (webhook_id)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS webhook_events_waiting ON webhook_events (number) WHERE webhook_id IS NULL;
  CREATE INDEX IF NOT EXISTS webhook_events_of_webhook ON webhook_events (webhook_id);
  CREATE INDEX IF NOT EXISTS webhook_events_by_id ON webhook_events (event_id);
  CREATE TABLE IF NOT EXISTS webhook_deliveries (
    id          INTEGER PRIMARY KEY,
    webhook_id  TEXT NOT NULL REFERENCES webhooks (webhook_id),
    endpoint_id TEXT NOT NULL REFERENCES webhook_endpoints (id),
    state       TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    created_ms  INTEGER NOT NULL,
    expires_ms  INTEGER NOT NULL,
    due_ms      INTEGER,
    rounds      INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX IF NOT EXISTS webhook_deliveries_due ON webhook_deliveries (due_ms) WHERE due_ms IS NOT NULL;
  CREATE INDEX IF NOT EXISTS webhook_deliveries_due_at ON webhook_deliveries (endpoint_id, due_ms)
    WHERE due_ms IS NOT NULL;
  CREATE INDEX IF NOT EXISTS webhook_deliveries_of_webhook ON webhook_deliveries (webhook_id);
  CREATE TABLE IF NOT EXISTS webhook_attempts (
    number      INTEGER PRIMARY KEY,
    delivery_id INTEGER NOT NULL REFERENCES webhook_deliveries (id),
    at_ms       INTEGER NOT NULL,
    status      INTEGER,
    error       TEXT,
    duration_ms REAL NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS webhook_attempts_of_delivery ON webhook_attempts (delivery_id);
  CREATE TABLE IF NOT EXISTS webhook_stops (
    delivery_id INTEGER PRIMARY KEY REFERENCES webhook_deliveries (id),
    kind        TEXT NOT NULL CHECK (kind IN ('paused', 'dropped')),
    due_ms      INTEGER
  ) STRICT;
  CREATE TABLE IF NOT EXISTS webhook_exchanges (
    attempt     INTEGER PRIMARY KEY REFERENCES webhook_attempts (number),
    spoilt      TEXT,
    exchange    TEXT NOT NULL
  ) STRICT;
`;
