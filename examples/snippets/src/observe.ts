import { pinoLog } from "@countersign/observe/log";
import { pino } from "pino";

/**
 * Once, where the process starts. From here on no refusal is a line on
 * stderr: they are all here.
 */
export function startLog(): () => void {
  return pinoLog(pino());
}
