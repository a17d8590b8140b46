import { X509Certificate } from "node:crypto";
import { isIP, isIPv4 } from "node:net";
import {
  option,
  optionError,
  readOptions,
  type OptionRule,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import type { Delivery } from "../delivery/delivery.ts";
import type { DeliveryOptions } from "../delivery/options.ts";
import { readPage, type PageOptions } from "../page/page-options.ts";

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
  /**
   * Sends webhooks, and the page's payouts, as a proxy that ends TLS hands them on: with this IP address in X-Forwarded-For, and
   * X-Forwarded-Proto: https. For a platform that trusts this machine as its proxy. Default none.
   */
  readonly forwardedFor?: string | undefined;
  /** Issuer certificates in PEM form that endpoints are checked against. Default those of Node. */
  readonly ca?: string | Buffer | undefined;
  readonly delivery?: DeliveryOptions | undefined;
  /** Called with a delivery after each of its attempts. A throw becomes a process warning. */
  readonly onAttempt?: ((delivery: Delivery) => void) | undefined;
  /** Milliseconds since 1970. Default the system's clock. */
  readonly clock?: (() => number) | undefined;
  /** Serve a page at `/`, where deliveries are looked at and payouts are sent. Default false. */
  readonly page?: boolean | PageOptions | undefined;
}

export type ResolvedSandboxOptions = ReadOptions<typeof table> & Required<Pick<SandboxOptions, "ca">>;

// Not in the table: its inferred declaration would spell Buffer with a type argument, which TypeScript 5.0 does not know.
const ca = option.optional(checked(isCertificate, "issuer certificates in PEM form"), "Node's list");

const table = {
  apiKey: checked(matches(/^[\x21-\x7e]{1,256}$/), "1 to 256 printable ASCII characters without spaces"),
  host: checked(isLoopback, "a loopback address such as 127.0.0.1 or ::1", "127.0.0.1"),
  port: option.integer({ min: 0, max: 65_535, fallback: 0 }),
  database: checked(matches(/^[^]+$/), "a file name or :memory:", ":memory:"),
  allowHttp: checked(isAllowHttp, 'true, false or "loopback"', false),
  speed: checked(isSpeed, "a number above 0", 1),
  forwardedFor: option.optional(checked(isAddress, "an IP address")),
  delivery: option.optional(option.section<DeliveryOptions>("{ duplicate: true }")),
  onAttempt: option.optional(option.call<(delivery: Delivery) => void>()),
  clock: option.clock(Date.now, "the system's"),
  page: option.own(readPage, "false"),
} satisfies OptionTable<Omit<SandboxOptions, "ca">, unknown>;

/** Fills in the defaults, except for `delivery`, read where it is used. Throws an OptionError. */
export function resolveSandboxOptions(options: SandboxOptions): ResolvedSandboxOptions {
  return readOptions("startSandbox", { ...table, ca }, options);
}

function checked<Read>(
  fits: (value: unknown) => value is Read,
  expected: string,
  fallback?: Read,
): OptionRule<Read> {
  const byDefault = fallback === undefined ? "required" : JSON.stringify(fallback);
  return option.own((value = fallback, owner, name) => {
    if (fits(value)) return value;
    throw optionError(owner, name, expected, value);
  }, byDefault);
}

function matches(pattern: RegExp): (value: unknown) => value is string {
  return (value): value is string => typeof value === "string" && pattern.test(value);
}

// A name can be made to mean anything by a hosts file, so only addresses are taken.
function isLoopback(host: unknown): host is string {
  return typeof host === "string" && ((isIPv4(host) && host.startsWith("127.")) || host === "::1");
}

function isAddress(address: unknown): address is string {
  return typeof address === "string" && isIP(address) !== 0;
}

function isAllowHttp(value: unknown): value is boolean | "loopback" {
  return typeof value === "boolean" || value === "loopback";
}

function isSpeed(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

// Node takes its own list for an empty value, and ignores one that holds no certificate.
function isCertificate(pem: unknown): pem is string | Buffer {
  if (typeof pem !== "string" && !Buffer.isBuffer(pem)) return false;
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
