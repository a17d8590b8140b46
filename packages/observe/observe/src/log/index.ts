export { consoleLog, type ConsoleLogOptions } from "./console-log.ts";
export type { LogOptions } from "./entries.ts";
export { pinoLog, type FieldLogger } from "./pino-log.ts";
