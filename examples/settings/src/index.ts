export { failureOf } from "./engine-failure.ts";
export type { Environment } from "./environment.ts";
export type { Business } from "./files.ts";
export { openKeys, type KeySource, type OpenKeys } from "./keys.ts";
export { assertFreePort, listen } from "./listen.ts";
export { reasonOf, SettingError } from "./setting-error.ts";
export { readSettings, settingWarnings, type Settings } from "./settings.ts";
export {
  parsePostgresUrl,
  parseRedisUrl,
  type PostgresLocation,
  type RedisLocation,
  type SqliteLocation,
  type StoreLocation,
} from "./store.ts";
export { parsePort } from "./values.ts";
export type { WebhookSettings } from "./webhook.ts";
