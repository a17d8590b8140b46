import { Option } from "commander";
import { UsageError } from "./command-io.ts";

/** The flag that every command has which sends to a URL. */
export function allowHttpOption(): Option {
  return new Option("--allow-http", "send over plain http to another host than this machine");
}

/**
 * Throws a UsageError for an http URL of another host than this machine, unless the command line says that this is wanted. What is no
 * URL is left to whoever reads it.
 */
export function assertHttpAllowed(option: string, url: string, allowHttp: boolean | undefined): void {
  if (allowHttp === true || !isPlainToOthers(url)) return;
  throw new UsageError(
    `${option}: plain http shows everything that is sent to the network; write https://, or add --allow-http`,
  );
}

/** As assertHttpAllowed(), where no flag allows it. `because` says why, as a sentence without its end. */
export function assertHttpsOrLoopback(option: string, url: string | undefined, because: string): void {
  if (url === undefined || !isPlainToOthers(url)) return;
  throw new UsageError(
    `${option}: ${because}; write https://. Plain http is for this machine alone, whatever is allowed: ` +
      "--allow-http is for payout, webhook, trigger, doctor and sandbox",
  );
}

function isPlainToOthers(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopback(hostname);
}

/** Whether a host is this machine whatever a name server says; `hostname` as URL has it. */
function isLoopback(hostname: string): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}
