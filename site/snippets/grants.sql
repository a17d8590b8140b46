GRANT USAGE ON SCHEMA public TO platform;
GRANT SELECT ON countersign_schema TO platform;
GRANT SELECT, INSERT, UPDATE, DELETE ON countersign_idempotency, countersign_nonces TO platform;
