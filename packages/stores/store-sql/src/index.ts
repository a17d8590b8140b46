export * from "./mysql/index.ts";
export * from "./postgres/index.ts";
export * from "./sqlite/index.ts";
