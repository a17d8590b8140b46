export { createPostgresWork } from "./postgres/work-store.ts";
export { postgresMissingKeys } from "./postgres/table-keys.ts";
