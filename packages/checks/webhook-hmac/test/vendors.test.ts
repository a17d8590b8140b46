import { readFileSync } from "node:fs";
import { signatureSchemes, signPayloadHeaders, verifyPayload } from "@countersign/webhook-hmac";
import type { SchemeName } from "../dist/scheme.js";
import { describe, expect, test } from "@jest/globals";

interface VendorCase {
  readonly scheme: SchemeName;
  readonly name: string;
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly vendor: "accepts" | "refuses";
}

// Written by vendors.mjs beside it.
const { nowSeconds, cases }: { readonly nowSeconds: number; readonly cases: readonly VendorCase[] } =
  JSON.parse(readFileSync(new URL("fixtures/vendors.json", import.meta.url), "utf8"));
const clock = (): number => nowSeconds * 1000;
const optionsOf = (scheme: SchemeName): object => ({
  scheme,
  ...(signatureSchemes[scheme].timestamp !== undefined && { clock }),
});

test.each(cases)("$scheme, $name: as the vendor's package, which $vendor it", (vendorCase) => {
  const { scheme, secret, headers, body, vendor } = vendorCase;
  const verify = (): unknown => verifyPayload(Buffer.from(body), headers, [secret], optionsOf(scheme));
  if (vendor === "accepts") expect(verify()).toMatchObject({ secretIndex: 0 });
  else
    expect(verify).toThrow(
      expect.objectContaining({ status: 401, code: expect.stringMatching(/^payload-/) }),
    );
});

test.each(Object.keys(signatureSchemes))("%s has messages of its vendor, good and bad ones", (name) => {
  const verdicts = cases.filter(({ scheme }) => scheme === name).map(({ vendor }) => vendor);
  for (const verdict of ["accepts", "refuses"]) {
    expect(verdicts.filter((one) => one === verdict).length).toBeGreaterThan(2);
  }
});

describe("signPayloadHeaders", () => {
  const plain = cases.filter(({ name, vendor }) => /^body \d$/.test(name) && vendor === "accepts");

  test.each(plain)("$scheme, $name: signs as the vendor does", ({ scheme, secret, headers, body }) => {
    const { timestamp, id } = signatureSchemes[scheme];
    const signed = signPayloadHeaders(Buffer.from(body), secret, {
      scheme,
      ...(timestamp !== undefined && { timestampSeconds: nowSeconds }),
      ...(id !== undefined && { id: headers[id] }),
    });
    expect(signed).toEqual(headers);
  });

  test.each<[string, () => unknown]>([
    ["an identifier that is missing", () => signPayloadHeaders(Buffer.from("x"), "AQID", { scheme: "svix" })],
    [
      "one with a full stop",
      () => signPayloadHeaders(Buffer.from("x"), "AQID", { scheme: "svix", id: "a.b" }),
    ],
    ["text for bytes", () => signPayloadHeaders("x" as never, "a", { scheme: "github" })],
    ["an unknown scheme", () => signPayloadHeaders(Buffer.from("x"), "a", { scheme: "gitlab" as never })],
  ])("throws on %s", (_name, sign) => {
    expect(sign).toThrow(TypeError);
    expect(sign).toThrow(/^signPayloadHeaders: /);
  });
});

// From the documentation of GitHub's webhooks.
test("the example of GitHub's documentation", () => {
  const signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
  const secrets = ["It's a Secret to Everybody"];
  expect(verifyPayload(Buffer.from("Hello, World!"), signature, secrets, { scheme: "github" })).toEqual({
    bytes: Buffer.from("Hello, World!"),
    secretIndex: 0,
  });
});
