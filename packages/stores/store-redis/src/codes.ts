/** The codes of the notices about a server that can lose a record. */
export type RedisNoticeCode =
  | "redis-forgets-on-restart"
  | "redis-is-replica"
  | "redis-may-evict"
  | "redis-not-checked"
  | "redis-too-old";
