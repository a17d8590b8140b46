export { createPostgresWork } from "./postgres/work-store.ts";
export { isPostgres } from "./postgres/engine-check.ts";
export { postgresMissingKeys } from "./postgres/primary-keys.ts";
