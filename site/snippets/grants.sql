GRANT USAGE ON SCHEMA countersign TO platform;
GRANT SELECT ON countersign.countersign_schema TO platform;
GRANT SELECT, INSERT, UPDATE, DELETE ON
  countersign.countersign_idempotency, countersign.countersign_nonces,
  countersign.countersign_answers
  TO platform;
GRANT SELECT, INSERT, UPDATE, DELETE ON
  countersign.countersign_lanes, countersign.countersign_tasks,
  countersign.countersign_queues, countersign.countersign_newest
  TO platform;
