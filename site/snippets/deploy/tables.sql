CREATE TABLE businesses (id text, iban text, PRIMARY KEY (id, iban));
CREATE TABLE payments (
  idempotency_key text PRIMARY KEY, iban text NOT NULL,
  amount numeric(17, 2) NOT NULL
);
CREATE TABLE events (
  event_id text PRIMARY KEY, type text NOT NULL, data jsonb NOT NULL
);
