import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { createWarnOnce } from "@countersign/core/internal";
import { proxyTrust } from "@countersign/express/internal";
import type { GuardRequest } from "@countersign/express";

type TrustFunction = Parameters<typeof proxyTrust.trustsEverybody>[0];

let warnings: string[];
let warnOnce: ReturnType<typeof createWarnOnce>;

beforeEach(() => {
  warnings = [];
  jest.spyOn(process, "emitWarning").mockImplementation(((text: string, { code }: { code: string }) => {
    warnings.push(`${code}: ${text}`);
  }) as typeof process.emitWarning);
  warnOnce = createWarnOnce("myGuard");
});

/** A request whose app has this setting, compiled as Express would. */
function requestOf(
  setting: unknown,
  trust: TrustFunction,
  kind: "function" | "object" = "function",
): GuardRequest {
  const get = (name: string): unknown => (name === "trust proxy" ? setting : trust);
  const app = kind === "function" ? Object.assign(() => {}, { get }) : { get };
  return { app } as unknown as GuardRequest;
}

describe("createTrustInspector", () => {
  const proxies: TrustFunction = (address) => address === "10.0.0.5";

  test.each(["function", "object"] as const)("returns the trust function of an app that is a %s", (kind) => {
    expect(proxyTrust.inspector(warnOnce)(requestOf(["10.0.0.5"], proxies, kind))).toBe(proxies);
    expect(warnings).toEqual([]);
  });

  test.each<[string, GuardRequest]>([
    ["there is no app", {} as GuardRequest],
    ["the app is no Express app", { app: { get: 1 } } as unknown as GuardRequest],
    ["the app has no compiled setting", { app: { get: () => undefined } } as unknown as GuardRequest],
    ["trust is off", requestOf(false, () => false)],
    ["no hop is trusted", requestOf(0, () => false)],
    ["the list is empty", requestOf([], () => false)],
  ])("returns nothing when %s", (_title, req) => {
    expect(proxyTrust.inspector(warnOnce)(req)).toBeUndefined();
  });

  test("refuses trust in everybody, at any request, and warns of it once", () => {
    const inspect = proxyTrust.inspector(warnOnce);
    const req = requestOf(true, () => true);
    for (let round = 0; round < 3; round++) {
      expect(() => inspect(req)).toThrow(
        expect.objectContaining({ status: 500, code: "trust-proxy-unsafe" }),
      );
    }
    expect(warnings).toEqual([expect.stringMatching(/^trust-proxy-unsafe: myGuard: .*X-Forwarded-Proto/)]);
    expect(warnOnce.has("trust-proxy-unsafe")).toBe(true);
  });

  test("refuses trust in every IPv4 or every IPv6 address alone", () => {
    const inspect = proxyTrust.inspector(warnOnce);
    for (const mark of [".", ":"]) {
      const trust: TrustFunction = (address) => address?.includes(mark) ?? false;
      expect(() => inspect(requestOf("0.0.0.0/0", trust))).toThrow(/lists? the addresses of your proxies/);
    }
  });

  test("warns once of a setting that Express reads otherwise than it looks", () => {
    const inspect = proxyTrust.inspector(warnOnce);
    for (const setting of ["2", 1.5]) inspect(requestOf(setting, proxies));
    expect(warnings).toEqual([expect.stringMatching(/^trust-proxy-misread: myGuard: /)]);
  });

  test("judges a setting once, and a changed one anew", () => {
    const inspect = proxyTrust.inspector(warnOnce);
    const trust = jest.fn(proxies);
    const req = requestOf(["10.0.0.5"], trust);
    inspect(req);
    const asked = trust.mock.calls.length;
    expect(asked).toBeGreaterThan(0);
    inspect(req);
    expect(trust).toHaveBeenCalledTimes(asked);
    expect(() => inspect(requestOf(true, () => true))).toThrow();
  });
});
