export { consoleLog } from "./console-log.ts";
export { pinoLog, type FieldLogger } from "./pino-log.ts";
