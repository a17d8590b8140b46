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
  if (allowHttp === true || !URL.canParse(url)) return;
  const { protocol, hostname } = new URL(url);
  if (protocol !== "http:" || isLoopback(hostname)) return;
  throw new UsageError(
    `${option}: plain http shows everything that is sent to the network; write https://, or add --allow-http`,
  );
}

/** Whether a host is this machine whatever a name server says; `hostname` as URL has it. */
function isLoopback(hostname: string): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}
