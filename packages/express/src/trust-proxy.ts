import { isIP } from "node:net";
import { GuardError, type WarnOnce, type Warning } from "@countersign/core";
import type { ExpressCode } from "./codes.ts";
import type { GuardRequest } from "./types.ts";

/** Express's compiled `trust proxy` setting: whether the address at this distance from the server is a trusted proxy. */
export type TrustFunction = (address: string | undefined, hop: number) => boolean;

type Verdict = "trusts-nobody" | "trusts-proxies" | "trusts-everybody";

/** No chain of proxies is this long: trust at this distance is trust in the caller's own text. */
const farHop = 32;
// Class E and documentation addresses, discard-only and documentation prefixes: together in no list of real proxies.
const strangersIPv4 = ["0.0.0.1", "192.0.2.1", "203.0.113.1", "240.0.0.1"];
const strangersIPv6 = ["100::1", "2001:db8::1", "3fff::1"];
const namedRanges = new Set(["loopback", "linklocal", "uniquelocal"]);

/** Looks at the app's `trust proxy` setting behind a request; see {@link createTrustInspector}. */
export type TrustInspector = (req: GuardRequest) => TrustFunction | undefined;

/**
 * Returns a function that looks at the app's `trust proxy` setting behind a request and returns the trust function when
 * proxies are trusted. It throws a GuardError (500, `trust-proxy-unsafe`) while the setting trusts everybody, because the caller
 * then writes X-Forwarded-For and X-Forwarded-Proto itself, and warns once of that and of a setting that is read otherwise than it
 * looks. A setting is judged once, by the identity of its compiled function.
 */
export function createTrustInspector(warnOnce: WarnOnce): TrustInspector {
  const verdicts = new WeakMap<TrustFunction, Verdict>();
  const verdictOn = (trust: TrustFunction, setting: unknown, req: GuardRequest): Verdict => {
    const known = verdicts.get(trust);
    if (known !== undefined) return known;
    const verdict = judge(setting, trust);
    verdicts.set(trust, verdict);
    if (verdict === "trusts-proxies" && isMisread(setting)) warnOnce(misreadSetting(req));
    return verdict;
  };

  return function inspectTrust(req) {
    const app = expressAppOf(req);
    const trust = app?.get("trust proxy fn");
    if (app === undefined || !isTrustFunction(trust)) return undefined;
    const verdict = verdictOn(trust, app.get("trust proxy"), req);
    if (verdict === "trusts-everybody") throw unsafeTrust(req, warnOnce);
    return verdict === "trusts-proxies" ? trust : undefined;
  };
}

interface ExpressApp {
  readonly get: (setting: string) => unknown;
}

function expressAppOf(req: GuardRequest): ExpressApp | undefined {
  const app: unknown = "app" in req ? req.app : undefined;
  return isExpressApp(app) ? app : undefined;
}

function isExpressApp(app: unknown): app is ExpressApp {
  return (
    (typeof app === "function" || typeof app === "object") &&
    app !== null &&
    "get" in app &&
    typeof app.get === "function"
  );
}

function isTrustFunction(value: unknown): value is TrustFunction {
  return typeof value === "function";
}

function judge(setting: unknown, trust: TrustFunction): Verdict {
  // false, undefined, 0, NaN, "" and []: Express compiles all of them to trust in nobody.
  if (!setting || (Array.isArray(setting) && setting.length === 0)) return "trusts-nobody";
  const trusted = (address: string): boolean => trust(address, farHop);
  return strangersIPv4.every(trusted) || strangersIPv6.every(trusted) ? "trusts-everybody" : "trusts-proxies";
}

function unsafeTrust(req: GuardRequest, warnOnce: WarnOnce): GuardError<ExpressCode> {
  const code = "trust-proxy-unsafe";
  const message =
    "the app's trust proxy setting trusts every address, so the caller chooses its own address and scheme by writing " +
    "X-Forwarded-For and X-Forwarded-Proto; " +
    'list the addresses of your proxies instead, for example app.set("trust proxy", ["10.0.0.5"])';
  warnOnce({ code, message, req });
  return new GuardError<ExpressCode>({ status: 500, code, message });
}

function misreadSetting(req: GuardRequest): Warning {
  return {
    code: "trust-proxy-misread",
    message:
      "the app's trust proxy setting is read otherwise than it looks: a hop count must be a positive integer of type number " +
      '(Express takes the string "2" for the address 0.0.0.2 and trusts no proxy), a list must hold plain IP addresses or CIDR blocks',
    req,
  };
}

function isMisread(setting: unknown): boolean {
  if (typeof setting === "number") return !Number.isInteger(setting) || setting < 1;
  const parts: readonly unknown[] =
    typeof setting === "string" ? setting.split(",") : Array.isArray(setting) ? setting : [];
  return parts.some((part) => {
    const [address = ""] = String(part).trim().split("/");
    return isIP(address) === 0 && !namedRanges.has(address);
  });
}
