// #region config
const ours = [
  "answers",
  "idempotency",
  "lanes",
  "newest",
  "nonces",
  "queues",
  "schema",
  "tasks",
];
export const config = {
  experimental: { externalTables: true },
  tables: { external: ours.map((name) => `public.countersign_${name}`) },
};
// #endregion config
