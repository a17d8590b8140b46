import { createHmac } from "node:crypto";
import type { GuardError } from "@countersign/core";
import {
  signatureSchemes,
  signPayloadHeaders,
  verifiedPayload,
  verifyPayload,
  webhookHmac,
  type SignatureScheme,
  type WebhookHmacOptions,
} from "@countersign/webhook-hmac";
import type { SchemeName } from "../dist/scheme.js";
import { describe, expect, test } from "@jest/globals";
import { expressVersions, post, requestOf, run, siteWith } from "./harness.ts";

type VerifyPayloadOptions = NonNullable<Parameters<typeof verifyPayload>[3]>;

// TEST SECRET, as text and as the vendors of whsec_ write it.
const secret = Buffer.from("test-secret-of-24-bytes!").toString("base64");
const body = Buffer.from('{"type":"a"}');
const nowSeconds = 1_700_000_000;
const clock = (): number => nowSeconds * 1000 + 400;
const names = Object.keys(signatureSchemes) as readonly SchemeName[];
const hasTime = (name: SchemeName): boolean => signatureSchemes[name].timestamp !== undefined;
const timed = names.filter(hasTime);

const optionsOf = (scheme: SchemeName): VerifyPayloadOptions => ({
  scheme,
  ...(hasTime(scheme) && { clock }),
});

function headersOf(scheme: SchemeName, seconds = nowSeconds): Record<string, string> {
  const { id } = signatureSchemes[scheme];
  return signPayloadHeaders(body, secret, {
    scheme,
    ...(hasTime(scheme) && { timestampSeconds: seconds }),
    ...(id !== undefined && { id: "msg_1" }),
  });
}

function verdictOf(
  headers: Parameters<typeof verifyPayload>[1],
  options: VerifyPayloadOptions,
  secrets: readonly string[] = [secret],
): string {
  try {
    verifyPayload(body, headers, secrets, options);
    return "passes";
  } catch (error) {
    const { code, status } = error as Partial<GuardError>;
    if (status !== 401) throw error;
    return code ?? "no code";
  }
}

const lines = (headers: Readonly<Record<string, string>>): string[] => Object.entries(headers).flat();

describe.each(expressVersions)("webhookHmac on %s", (_version, express) => {
  test.each(names)("takes what is signed as %s does, and answers every refusal alike", async (scheme) => {
    const { app, passages, refusals } = siteWith(express, webhookHmac({ secret, ...optionsOf(scheme) }));
    const headers = headersOf(scheme);
    expect((await post(app, lines(headers), body)).status).toBe(204);
    const { timestamp, id } = signatureSchemes[scheme];
    expect(passages.map(({ payload }) => payload)).toEqual([
      {
        bytes: body,
        secretIndex: 0,
        ...(timestamp !== undefined && { timestampSeconds: nowSeconds }),
        ...(id !== undefined && { id: "msg_1" }),
      },
    ]);
    const bad: (readonly string[])[] = [
      [],
      // Each field twice, one after the other.
      ...Object.entries(headers).map(([name, value]) => [...lines(headers), name, value]),
      ...Object.keys(headers).map((name) => lines({ ...headers, [name]: "" })),
      ...Object.keys(headers).map((name) => lines({ ...headers, [name]: "\u00fc\u{80}" })),
      ...(hasTime(scheme) ? [lines(headersOf(scheme, nowSeconds - 301))] : []),
    ];
    const answers = [];
    for (const each of bad) {
      const answer = await post(app, each, body);
      expect(answer.status).toBe(401);
      answers.push(JSON.stringify({ ...answer, headers: { ...answer.headers, date: "" } }));
    }
    expect(new Set(answers).size).toBe(1);
    expect(refusals).toHaveLength(bad.length);
    expect(refusals.map(({ stack }) => stack).join()).not.toContain(secret);
  });
});

describe.each(timed)("the time in a signature of %s", (scheme) => {
  const sign = (text: string): Record<string, string> => {
    const headers = headersOf(scheme);
    // Signed rightly, whatever it is.
    const { signed = "", header, timestamp, prefix = "" } = signatureSchemes[scheme];
    const content = signed
      .replace("{timestamp}", text)
      .replace("{id}", "msg_1")
      .replace("{body}", body.toString());
    const isText = scheme === "slack" || scheme === "stripe";
    const key = isText ? secret : Buffer.from(secret, "base64");
    const signature =
      prefix +
      createHmac("sha256", key)
        .update(content)
        .digest(isText ? "hex" : "base64");
    if (timestamp !== undefined && "header" in timestamp) {
      return { ...headers, [timestamp.header]: text, [header]: signature };
    }
    return { [header]: `t=${text},${signature}` };
  };

  test.each([
    ["now", `${nowSeconds}`, "passes"],
    ["the oldest", `${nowSeconds - 300}`, "passes"],
    ["the latest", `${nowSeconds + 300}`, "passes"],
    ["too old", `${nowSeconds - 301}`, "payload-timestamp-expired"],
    ["too early", `${nowSeconds + 301}`, "payload-timestamp-future"],
    ["zero", "0", "payload-timestamp-expired"],
    ["milliseconds", `${nowSeconds}000`, "payload-timestamp-malformed"],
    ["NaN", "NaN", "payload-timestamp-malformed"],
    ["Infinity", "Infinity", "payload-timestamp-malformed"],
    ["a fraction", `${nowSeconds}.5`, "payload-timestamp-malformed"],
    ["an exponent", "17e8", "payload-timestamp-malformed"],
    ["hex", "0x6553f100", "payload-timestamp-malformed"],
    ["a sign", `+${nowSeconds}`, "payload-timestamp-malformed"],
    ["a negative one", `-${nowSeconds}`, "payload-timestamp-malformed"],
    ["a zero before it", `0${nowSeconds}`, "payload-timestamp-malformed"],
    ["a space in it", "1700 000000", "payload-timestamp-malformed"],
    ["a date", "2023-11-14T22:13:20Z", "payload-timestamp-malformed"],
    ["a great many digits", "9".repeat(400), "payload-timestamp-malformed"],
    ["digits of another script", "١٧٠٠٠٠٠٠٠٠", "payload-timestamp-malformed"],
    ["nothing", "", "payload-timestamp-malformed"],
  ])("%s", (_name, text, verdict) => {
    // In a list it makes an entry that is none.
    const isEntry = scheme === "stripe" && /[^!-~]/.test(text);
    const expected = isEntry ? "payload-signature-malformed" : verdict;
    expect(verdictOf(sign(text), optionsOf(scheme))).toBe(expected);
  });

  test("is held to toleranceSeconds", () => {
    const options = { ...optionsOf(scheme), toleranceSeconds: 10 };
    expect(verdictOf(sign(`${nowSeconds - 10}`), options)).toBe("passes");
    expect(verdictOf(sign(`${nowSeconds - 11}`), options)).toBe("payload-timestamp-expired");
  });

  test("cannot be left out or changed", () => {
    const { header, timestamp } = signatureSchemes[scheme];
    const headers = headersOf(scheme);
    const own = timestamp !== undefined && "header" in timestamp ? timestamp.header : undefined;
    const without = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== own));
    const cut = { ...without, [header]: (headers[header] ?? "").replace(`t=${nowSeconds},`, "") };
    expect(verdictOf(cut, optionsOf(scheme))).toBe("payload-timestamp-missing");
    const other = `${nowSeconds + 1}`;
    const changed =
      own === undefined
        ? { [header]: (headers[header] ?? "").replace(`${nowSeconds}`, other) }
        : { ...headers, [own]: other };
    expect(verdictOf(changed, optionsOf(scheme))).toBe("payload-signature-wrong");
  });

  test("is looked at again when the body has arrived", async () => {
    let now = nowSeconds;
    const { id } = signatureSchemes[scheme];
    const req = requestOf([], new Uint8Array());
    const secrets = async (): Promise<readonly string[]> => {
      now += 301;
      return [secret];
    };
    const guard = webhookHmac({ secrets, scheme, clock: () => now * 1000 });
    const signed = signPayloadHeaders(new Uint8Array(), secret, {
      scheme,
      timestampSeconds: nowSeconds,
      ...(id !== undefined && { id: "msg_1" }),
    });
    req.rawHeaders.push(...lines(signed));
    expect(await run(guard, req)).toMatchObject({ status: 401, code: "payload-timestamp-expired" });
    expect(verifiedPayload(req)).toBeUndefined();
  });
});

describe("a list of signatures", () => {
  const stripe = (entries: readonly string[]): string => entries.join(",");
  const hex = (key: string): string =>
    createHmac("sha256", key).update(`${nowSeconds}.`).update(body).digest("hex");
  const right = `v1=${hex(secret)}`;
  const wrong = `v1=${hex("another")}`;
  const t = `t=${nowSeconds}`;

  test.each<[string, readonly string[], string]>([
    ["the time last", [right, t], "passes"],
    ["an unknown version beside it", [t, "v0=00", right], "passes"],
    ["any valid one", [t, wrong, right, wrong], "passes"],
    ["none valid", [t, wrong, wrong], "payload-signature-wrong"],
    ["the right one as another version", [t, right.replace("v1", "v0")], "payload-signature-malformed"],
    ["the time twice, alike", [t, t, right], "payload-timestamp-malformed"],
    ["the time twice", [t, "t=1", right], "payload-timestamp-malformed"],
    ["no time", [right], "payload-timestamp-missing"],
    ["no entry", [], "payload-signature-malformed"],
    ["an empty entry", [t, "", right], "payload-signature-malformed"],
    ["an empty entry at the end", [t, right, ""], "payload-signature-malformed"],
    ["white space behind a comma", [t, ` ${right}`], "payload-signature-malformed"],
    ["a malformed one beside the right one", [t, "v1=zz", right], "payload-signature-malformed"],
    ["upper case of the version", [t, right.replace("v1", "V1")], "payload-signature-malformed"],
    ["a bare one after one of its version", [t, wrong, hex(secret)], "passes"],
    ["a bare one after a bare one", [t, wrong, hex("another"), hex(secret)], "passes"],
    ["a bare one after the right one", [t, right, hex("another")], "passes"],
    ["bare ones, none valid", [t, wrong, hex("another")], "payload-signature-wrong"],
    ["a bare one first", [t, hex(secret), wrong], "payload-signature-wrong"],
    ["a bare one without a version", [t, hex(secret)], "payload-signature-malformed"],
    ["a bare one after another version", [t, wrong, "v0=00", hex(secret)], "payload-signature-wrong"],
    ["a bare one after the time", [wrong, t, hex(secret)], "payload-signature-wrong"],
    ["a bare one after text that is none", [t, wrong, "zz", hex(secret)], "payload-signature-wrong"],
    ["sixteen entries", [t, ...Array<string>(14).fill(wrong), right], "passes"],
    ["seventeen", [t, ...Array<string>(15).fill(wrong), right], "payload-signature-malformed"],
    ["a hundred thousand", [t, ...Array<string>(100_000).fill("v1=a"), right], "payload-signature-malformed"],
    ["a very long entry", [t, `x=${"a".repeat(9000)}`, right], "payload-signature-malformed"],
  ])("%s", (_name, entries, verdict) => {
    expect(verdictOf(stripe(entries), { scheme: "stripe", clock })).toBe(verdict);
  });

  test("of a header that a framework has joined is refused", () => {
    const joined = `${stripe([t, right])}, ${stripe([t, right])}`;
    expect(verdictOf(joined, { scheme: "stripe", clock })).toBe("payload-signature-malformed");
    const svix = headersOf("svix");
    const twice = { ...svix, "svix-signature": `${svix["svix-signature"]}, ${svix["svix-signature"]}` };
    expect(verdictOf(twice, optionsOf("svix"))).toBe("payload-signature-malformed");
  });

  // What a sender may write while its secret changes.
  describe.each<[string, SignatureScheme, (hmac: string) => string]>([
    ["hex and commas", { header: "X-Sig", signatureEncodings: ["hex"], separator: "," }, (hmac) => hmac],
    [
      "base64 and spaces",
      { header: "X-Sig", separator: " " },
      (hmac) => Buffer.from(hmac, "hex").toString("base64"),
    ],
  ])("of %s", (_name, { separator = ",", ...form }, write) => {
    const of = (key: string): string => write(createHmac("sha256", key).update(body).digest("hex"));
    const scheme = { ...form, separator, prefix: "v0=" };
    const fields = {
      "behind one prefix": `v0=${of("new")}${separator}${of("old")}`,
      "behind a prefix each": `v0=${of("new")}${separator}v0=${of("old")}`,
    };

    test.each(Object.entries(fields))("admits the new and the old secret %s, and no other", (_how, field) => {
      expect(verdictOf(field, { scheme }, ["new"])).toBe("passes");
      expect(verdictOf(field, { scheme }, ["old"])).toBe("passes");
      expect(verdictOf(field, { scheme }, ["another"])).toBe("payload-signature-wrong");
    });

    describe.each(expressVersions)("on %s", (_version, express) => {
      test.each(Object.entries(fields))("admits the old secret %s", async (_how, field) => {
        const { app } = siteWith(express, webhookHmac({ secret: "old", scheme }));
        expect(await post(app, ["X-Sig", field], body)).toMatchObject({ status: 204 });
      });
    });
  });

  test("is tried with every secret", () => {
    const other = Buffer.from("another-test-secret-24b!").toString("base64");
    const field = stripe([t, `v1=${hex(other)}`]);
    expect(verifyPayload(body, field, [secret, other], { scheme: "stripe", clock }).secretIndex).toBe(1);
  });
});

describe("the identifier of a message", () => {
  test.each([
    ["changed", "msg_2", "payload-signature-wrong"],
    ["empty", "", "payload-id-malformed"],
    ["with a full stop, which could be moved to the time", "msg_1.17", "payload-id-malformed"],
    ["with a space", "msg 1", "payload-id-malformed"],
    ["beyond ASCII", "msg_\u00fc", "payload-id-malformed"],
    ["very long", "m".repeat(257), "payload-id-malformed"],
  ])("%s", (_name, id, verdict) => {
    for (const [scheme, field] of [
      ["svix", "svix-id"],
      ["standard-webhooks", "webhook-id"],
    ] as const) {
      expect(verdictOf({ ...headersOf(scheme), [field]: id }, optionsOf(scheme))).toBe(verdict);
      const without = Object.entries(headersOf(scheme)).filter(([name]) => name !== field);
      expect(verdictOf(Object.fromEntries(without), optionsOf(scheme))).toBe("payload-id-missing");
    }
  });
});

describe("verifyPayload", () => {
  const headers = headersOf("svix");
  const options = optionsOf("svix");

  test.each<[string, Parameters<typeof verifyPayload>[1]]>([
    [
      "req.headers",
      Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    ],
    [
      "names in any case",
      Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value])),
    ],
    ["Headers of fetch", new Headers(headers)],
    ["every line", { rawHeaders: lines(headers) }],
    ["lists of values", Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))],
  ])("takes %s", (_name, given) => {
    expect(verdictOf(given, options)).toBe("passes");
    expect(verdictOf(given, options, ["AQIDBA=="])).toBe("payload-signature-wrong");
  });

  test.each<[string, Parameters<typeof verifyPayload>[1], string]>([
    ["no fields", {}, "payload-signature-missing"],
    ["two values", { ...headers, "svix-signature": ["v1,a", "v1,b"] }, "payload-signature-malformed"],
    ["two cases of one name", { ...headers, "Svix-Id": "msg_1" }, "payload-id-malformed"],
    [
      "a line twice",
      { rawHeaders: [...lines(headers), "SVIX-TIMESTAMP", "1"] },
      "payload-timestamp-malformed",
    ],
  ])("refuses %s", (_name, given, code) => {
    expect(verdictOf(given, options)).toBe(code);
  });

  test.each([
    ["X-Hub-Signature-256", "github"],
    ["Stripe-Signature", "stripe"],
    ["webhook-signature", "standard-webhooks"],
  ])("asks of who forgot the scheme, and got %s, whether it is %s", (name, scheme) => {
    expect(() => verifyPayload(body, { [name]: "x" }, [secret])).toThrow(
      `the request has no X-Payload-Signature field, and has ${name}: did you mean scheme: "${scheme}"?`,
    );
  });

  test("asks for all fields where one is not enough", () => {
    expect(() => verifyPayload(body, "v1,a", [secret], options)).toThrow(/several header fields/);
    expect(() => verifyPayload(body, undefined, [secret], options)).toThrow(TypeError);
  });
});

describe("a scheme of one's own", () => {
  const scheme: SignatureScheme = {
    ...signatureSchemes.stripe,
    header: "Acme-Signature",
    algorithm: "sha512",
  };

  test("signs and verifies", () => {
    const headers = signPayloadHeaders(body, secret, { scheme, timestampSeconds: nowSeconds });
    expect(headers["Acme-Signature"]).toMatch(/^t=1700000000,v1=[0-9a-f]{128}$/);
    expect(verdictOf(headers, { scheme, clock })).toBe("passes");
    expect(verdictOf(headers, { scheme: { ...scheme, algorithm: "sha256" }, clock })).toBe(
      "payload-signature-malformed",
    );
  });

  test.each([
    ["sha512", { algorithm: "sha512" }],
    ["sha512 in hex", { algorithm: "sha512", signatureEncodings: ["hex"] }],
    ["a prefix", { prefix: "sha256=", signatureEncodings: ["hex"] }],
    ["a prefix that ends with a space", { prefix: "sha256 ", signatureEncodings: ["hex"] }],
    ["a prefix with a space in a list", { prefix: "sha256 v1=", separator: "," }],
  ] as const)("may sign the body alone: %s", (_name, members) => {
    const own: SignatureScheme = { header: "X-Payload-Signature", ...members };
    const { algorithm = "sha256", signatureEncodings, prefix = "" } = own;
    const options = { scheme: own };
    const digest = createHmac(algorithm, secret)
      .update(body)
      .digest(signatureEncodings?.[0] ?? "base64");
    expect(verdictOf(prefix + digest, options)).toBe("passes");
    for (const bad of [
      digest.slice(1),
      `${prefix}${digest}=`,
      `x${prefix}${digest}`,
      `${digest} ${digest}`,
    ]) {
      expect(verdictOf(bad, options)).toBe("payload-signature-malformed");
    }
    expect(verdictOf(prefix + digest, options, ["other"])).toBe("payload-signature-wrong");
  });

  test("takes no altered last bits of 64 bytes in base64", () => {
    const own: SignatureScheme = { header: "X-S", algorithm: "sha512" };
    const digest = createHmac("sha512", secret).update(body).digest("base64");
    const last = digest.charCodeAt(85);
    const altered = `${digest.slice(0, 85)}${String.fromCharCode(last + 1)}==`;
    expect(verdictOf(digest, { scheme: own })).toBe("passes");
    expect(verdictOf(altered, { scheme: own })).toBe("payload-signature-malformed");
  });

  test("may put the time behind the body", () => {
    const own: SignatureScheme = {
      header: "X-S",
      timestamp: { header: "X-T" },
      signed: "{body}|{timestamp}",
    };
    const digest = createHmac("sha256", secret).update(body).update(`|${nowSeconds}`).digest("base64");
    expect(verdictOf({ "X-S": digest, "X-T": `${nowSeconds}` }, { scheme: own, clock })).toBe("passes");
    expect(verdictOf({ "X-S": digest, "X-T": `${nowSeconds + 1}` }, { scheme: own, clock })).toBe(
      "payload-signature-wrong",
    );
  });

  const base = { header: "X-S" };
  test.each<[string, unknown, RegExp]>([
    ["an unknown name", "gitlab", /option scheme must be one of "github", /],
    ["a name that every object has", "constructor", /option scheme must be/],
    ["no field", {}, /option scheme\.header must be/],
    ["a taken field", { header: "Authorization" }, /option scheme\.header must be/],
    ["an unknown member", { ...base, tolerance: 1 }, /unknown option scheme\.tolerance/],
    [
      "an unknown hash",
      { ...base, algorithm: "sha1" },
      /option scheme\.algorithm must be "sha256" or "sha512"/,
    ],
    ["a line feed in the prefix", { ...base, prefix: "v1\n" }, /option scheme\.prefix must be/],
    [
      "a space before the prefix",
      { ...base, prefix: " v1" },
      /option scheme\.prefix must be .* no space first/,
    ],
    [
      "a separator in the prefix",
      { ...base, prefix: "sha256 ", separator: " " },
      /option scheme\.prefix must not hold the separator/,
    ],
    [
      "a time that is not signed",
      { ...base, timestamp: { header: "X-T" } },
      /option scheme\.signed must have {timestamp}/,
    ],
    ["an identifier that is not signed", { ...base, id: "X-I" }, /option scheme\.signed must have {id}/],
    [
      "a signed time from nowhere",
      { ...base, signed: "{timestamp}.{body}" },
      /option scheme\.signed must have/,
    ],
    ["no body", { ...base, signed: "text" }, /option scheme\.signed must be/],
    ["the body twice", { ...base, signed: "{body}.{body}" }, /option scheme\.signed must be/],
    ["an unknown value", { ...base, signed: "{url}.{body}" }, /option scheme\.signed must be/],
    [
      "nothing between two values",
      { ...base, signed: "{timestamp}{body}", timestamp: { header: "X-T" } },
      /option scheme\.signed must be/,
    ],
    [
      "a digit behind the time",
      { ...base, signed: "{timestamp}0{body}", timestamp: { header: "X-T" } },
      /option scheme\.signed must be/,
    ],
    ["one field for two things", { ...base, id: "x-s", signed: "{id}.{body}" }, /one field for two things/],
    [
      "an entry without a separator",
      { ...base, prefix: "v1=", timestamp: { prefix: "t=" }, signed: "{timestamp}.{body}" },
      /option scheme\.timestamp in an entry needs/,
    ],
    [
      "entries that are alike",
      { ...base, separator: ",", prefix: "t=1", timestamp: { prefix: "t=" }, signed: "{timestamp}.{body}" },
      /option scheme\.timestamp in an entry needs/,
    ],
    [
      "two places for the time",
      { ...base, timestamp: { header: "X-T", prefix: "t=" } },
      /option scheme\.timestamp must/,
    ],
    ["no place for the time", { ...base, timestamp: {} }, /option scheme\.timestamp must be/],
  ])("throws on %s", (_name, given, message) => {
    const build = (): unknown => webhookHmac({ secret, scheme: given } as WebhookHmacOptions);
    expect(build).toThrow(TypeError);
    expect(build).toThrow(/^webhookHmac: /);
    expect(build).toThrow(message);
  });

  test.each([
    ["toleranceSeconds", { secret, scheme: "github", toleranceSeconds: 5 }],
    ["toleranceSeconds", { secret, toleranceSeconds: 5 }],
    ["clock", { secret, clock }],
  ])("asks for no %s without a time", (name, options) => {
    expect(() => webhookHmac(options as WebhookHmacOptions)).toThrow(
      new RegExp(`^webhookHmac: option ${name} has a meaning beside a scheme with a timestamp only`),
    );
  });

  test("refuses a secret that is no base64 where the scheme asks for it", () => {
    for (const bad of ["whsec_", "whsec_%%%%", "whsk_AAAA", "whsec_AAAAAAAA"]) {
      expect(() => webhookHmac({ secret: bad, scheme: "svix" })).toThrow(
        /^webhookHmac: option secret must be base64/,
      );
    }
    expect(() => webhookHmac({ secret: `whsec_${secret}`, scheme: "svix" })).not.toThrow();
    expect(() => webhookHmac({ secrets: [secret, `whsec_${secret}`], scheme: "svix" })).toThrow(/twice/);
  });
});
