import { isIPv4 } from "node:net";
import { holdsCertificate } from "../certificates.ts";
import type { Delivery, DeliveryOptions } from "../delivery/types.ts";
import { resolvePageOptions, type PageOptions } from "../page/page-options.ts";

/** Options of `startSandbox`. */
export interface SandboxOptions {
  /** Every request names it in X-API-KEY: printable ASCII without spaces. */
  readonly apiKey: string;
  /** A loopback address: 127.0.0.0/8 or `::1`. Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Default 0: a free one. */
  readonly port?: number | undefined;
  /** A file, created when missing, or `:memory:`. Default `:memory:`, where nothing survives the end. */
  readonly database?: string | undefined;
  /** Accept endpoints at http URLs: `loopback` those of this machine, true any. Default false. */
  readonly allowHttp?: boolean | "loopback" | undefined;
  /** Divides the delays and the retry period of deliveries: at 1440 a day takes a minute. Default 1. */
  readonly speed?: number | undefined;
  /** Issuer certificates in PEM form that endpoints are checked against. Default those of Node. */
  readonly ca?: string | Buffer | undefined;
  readonly delivery?: DeliveryOptions | undefined;
  /** Hears of each delivery after each of its attempts, as it is then. Its throw becomes a process warning. */
  readonly onAttempt?: ((delivery: Delivery) => void) | undefined;
  /** Milliseconds since 1970. Default the system's clock. */
  readonly clock?: (() => number) | undefined;
  /** Serve a page at `/`, where deliveries are looked at and payouts are sent. Default false. */
  readonly page?: boolean | PageOptions | undefined;
}

/** The options with their defaults. */
export interface ResolvedSandboxOptions {
  readonly apiKey: string;
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly allowHttp: boolean | "loopback";
  readonly speed: number;
  readonly ca: string | Buffer | undefined;
  readonly delivery: DeliveryOptions;
  readonly onAttempt: ((delivery: Delivery) => void) | undefined;
  readonly clock: () => number;
  readonly page: PageOptions | undefined;
}

const known: readonly (keyof SandboxOptions)[] = [
  "apiKey",
  "host",
  "port",
  "database",
  "allowHttp",
  "speed",
  "ca",
  "delivery",
  "onAttempt",
  "clock",
  "page",
];

/** Fills in the defaults. Throws a TypeError that names the option; `speed` and `delivery` are checked where they are used. */
export function resolveSandboxOptions(options: SandboxOptions): ResolvedSandboxOptions {
  if (!isObject(options)) throw new TypeError("startSandbox: options must be an object with an apiKey");
  const unknown = Object.keys(options).find((key) => !known.some((name) => name === key));
  if (unknown !== undefined) {
    throw new TypeError(`startSandbox: unknown option ${unknown}; known options are ${known.join(", ")}`);
  }
  const { apiKey, host = "127.0.0.1", port = 0, database = ":memory:", allowHttp = false } = options;
  const { speed = 1, ca, delivery = {}, onAttempt, clock = Date.now } = options;
  demand("apiKey", isApiKey(apiKey), "1 to 256 printable ASCII characters without spaces");
  demand("host", isLoopback(host), "a loopback address such as 127.0.0.1 or ::1");
  demand("port", Number.isInteger(port) && port >= 0 && port <= 65_535, "an integer from 0 to 65535");
  demand("database", typeof database === "string" && database !== "", "a file name or :memory:");
  demand(
    "allowHttp",
    typeof allowHttp === "boolean" || allowHttp === "loopback",
    'true, false or "loopback"',
  );
  demand("ca", ca === undefined || holdsCertificate(ca), "issuer certificates in PEM form");
  demand("delivery", isObject(delivery), "an object");
  demand("onAttempt", onAttempt === undefined || typeof onAttempt === "function", "a function");
  demand("clock", typeof clock === "function", "a function that gives milliseconds since 1970");
  const page = resolvePageOptions(options.page);
  return { apiKey, host, port, database, allowHttp, speed, ca, delivery, onAttempt, clock, page };
}

// No value in the message: one of the options is a secret.
function demand(option: keyof SandboxOptions, met: boolean, expected: string): void {
  if (!met) throw new TypeError(`startSandbox: option ${option} must be ${expected}`);
}

function isApiKey(value: unknown): boolean {
  return typeof value === "string" && /^[\x21-\x7e]{1,256}$/.test(value);
}

// A name can be made to mean anything by a hosts file, so only addresses are taken.
function isLoopback(host: unknown): boolean {
  return typeof host === "string" && ((isIPv4(host) && host.startsWith("127.")) || host === "::1");
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
