import { describe, expect, jest, test } from "@jest/globals";
import { verifiedCredential, webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { basic, post, requestOf, run, siteWith, expressVersions } from "./harness.ts";

const username = "lender";
const password = "test-secret";
const right = basic(username, password);
const longer = { username, password: "test-secret".repeat(20) };
const challenge = 'Basic realm="webhook", charset="UTF-8"';

describe.each(expressVersions)("webhookBasicAuth on %s", (_version, express) => {
  test("admits the credential, says which, and reads no body", async () => {
    const { app, passages } = siteWith(express, webhookBasicAuth({ username, password }));
    expect((await post(app, right)).status).toBe(204);
    expect(passages).toEqual([
      { webhook: { credentialIndex: 0 }, credential: { username, index: 0 }, hasReadBody: false },
    ]);
  });

  test.each<[string, string, readonly string[]]>([
    ["two Authorization lines, the first right", "malformed", [right, "Bearer x"]],
    ["two credentials joined by a comma", "malformed", [`${right}, ${right}`]],
    ["the scheme alone", "malformed", ["Basic"]],
    ["the token alone", "malformed", [right.slice("Basic ".length)]],
    ["the scheme glued to the token", "malformed", [right.replace(" ", "")]],
    ["plain text for base64", "malformed", [`Basic ${username}:${password}`]],
    ["base64 without a colon", "malformed", [`Basic ${Buffer.from("lender").toString("base64")}`]],
    ["base64 with trailing junk", "malformed", [`${right}=`]],
    ["base64 with junk inside", "malformed", [right.replace("Basic bGVu", "Basic bGVu.")]],
    ["base64 cut to no padding", "malformed", [basic(username, "secret").replace(/=+$/, "")]],
    ["quotation marks around the token", "malformed", [right.replace(/ (.*)$/, ' "$1"')]],
    ["password with a space after it", "wrong", [basic(username, `${password} `)]],
    ["prefix of the password", "wrong", [basic(username, "test-secre")]],
    ["password and user exchanged", "wrong", [basic(password, username)]],
    ["empty user", "malformed", [basic("", password)]],
    ["NUL after the password", "malformed", [basic(username, `${password}\0`)]],
    ["line feed after the password", "malformed", [basic(username, `${password}\n`)]],
    ["bytes that are no UTF-8", "malformed", ["Basic bGVuZGVyOv8="]],
    ["latin1 in the field", "malformed", [`${right}\u00e9`]],
  ])("refuses %s", async (_name, reason, lines) => {
    const { app, refusals, passages } = siteWith(express, webhookBasicAuth({ username, password }));
    const answer = await post(app, ...lines);
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toBe(challenge);
    expect(refusals.map(({ code }) => code)).toEqual([`credentials-${reason}`]);
    expect(passages).toEqual([]);
  });

  test("shows neither what was sent nor what was expected", async () => {
    const { app, refusals } = siteWith(express, webhookBasicAuth({ username, password }));
    const sent = basic("sent-name", "sent-password");
    const answer = await post(app, sent);
    const shown = [answer.body, JSON.stringify(answer.headers), ...refusals.map(({ stack }) => stack)].join();
    for (const text of [username, password, "sent-name", "sent-password", sent.slice(6), right.slice(6)]) {
      expect(shown).not.toContain(text);
    }
  });

  test("awaits an async verify and refuses on its rejection", async () => {
    const verify = async (name: string, word: string): Promise<boolean> => {
      await Promise.resolve();
      if (name === "broken") throw new Error("no database");
      return name === username && word === password;
    };
    const { app, refusals, passages } = siteWith(express, webhookBasicAuth({ verify }));
    expect((await post(app, right)).status).toBe(204);
    expect((await post(app, basic(username, "other"))).status).toBe(401);
    const broken = await post(app, basic("broken", password));
    expect([broken.status, broken.headers["retry-after"]]).toEqual([503, "5"]);
    expect(refusals.map(({ code }) => code)).toEqual(["credentials-wrong", "credentials-unavailable"]);
    expect(passages).toEqual([
      {
        webhook: { credentialIndex: undefined },
        credential: { username, index: undefined },
        hasReadBody: false,
      },
    ]);
  });
});

describe("webhookBasicAuth", () => {
  const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code;

  test.each([
    ["the scheme in lower case", "basic"],
    ["the scheme in upper case", "BASIC"],
    ["several spaces", "Basic   "],
  ])("takes %s (RFC 9110 section 11.1)", async (_name, scheme) => {
    const field = right.replace(/^Basic/, scheme);
    expect(await run(webhookBasicAuth({ username, password }), requestOf([field]))).toBeUndefined();
  });

  test.each([
    ["a colon in the password", "lender", "a:b::c"],
    ["a user and password in UTF-8", "m\u00fcller", "pa\u00df\u{1f3e6}"],
    ["the replacement character", "lender", "\ufffd"],
    ["spaces around the password", "lender", " pass word "],
    ["a long password", "lender", "x".repeat(4000)],
  ])("takes %s", async (_name, name, word) => {
    const guard = webhookBasicAuth({ username: name, password: word });
    expect(await run(guard, requestOf([basic(name, word)]))).toBeUndefined();
  });

  test("compares bytes: what decodes to the replacement character is not it", async () => {
    const guard = webhookBasicAuth({ username: "lender", password: "\ufffd" });
    const field = `Basic ${Buffer.concat([Buffer.from("lender:"), Buffer.from([0xff])]).toString("base64")}`;
    expect(codeOf(await run(guard, requestOf([field])))).toBe("credentials-malformed");
  });

  test("takes no token with zeros behind it, as Node's insecureHTTPParser hands them over", async () => {
    const guard = webhookBasicAuth({ credentials: [{ username, password }, longer] });
    for (const field of [right, basic(longer.username, longer.password)]) {
      expect(await run(guard, requestOf([field]))).toBeUndefined();
      expect(await run(guard, requestOf([`${field}\0`]))).toMatchObject({ code: "credentials-malformed" });
    }
  });

  test("does not take another Unicode form of a password for it", async () => {
    const guard = webhookBasicAuth({ username: "lender", password: "\u00e9" });
    expect(codeOf(await run(guard, requestOf([basic("lender", "e\u0301")])))).toBe("credentials-wrong");
  });

  test.each([
    ["a byte order mark", `\uFEFF${password}`],
    ["spaces alone", "  "],
  ])(
    "takes a password with %s that a caller sends for a wrong one, not for a malformed one",
    async (_name, sent) => {
      const guard = webhookBasicAuth({ username, password });
      expect(codeOf(await run(guard, requestOf([basic(username, sent)])))).toBe("credentials-wrong");
    },
  );

  test("admits each of several credentials, and says which", async () => {
    const credentials = [
      { username: "new", password: "test-secret-2" },
      { username: "old", password: "test-secret-1" },
      { username: "old", password: "test-secret-0" },
    ];
    const guard = webhookBasicAuth({ credentials });
    for (const [index, credential] of credentials.entries()) {
      const req = requestOf([basic(credential.username, credential.password)]);
      req.webhook = { credentialIndex: 7 };
      expect(await run(guard, req)).toBeUndefined();
      expect(req.webhook).toEqual({ credentialIndex: index });
      expect(verifiedCredential(req)).toEqual({ username: credential.username, index });
    }
    expect(codeOf(await run(guard, requestOf([basic("new", "test-secret-1")])))).toBe("credentials-wrong");
  });

  test("is not moved by a later change of the options", async () => {
    const credentials = [{ username, password }];
    const guard = webhookBasicAuth({ credentials });
    credentials[0] = { username: "other", password: "other" };
    expect(await run(guard, requestOf([right]))).toBeUndefined();
  });

  test("keeps what an earlier guard put on req.webhook", async () => {
    const req = requestOf([right]);
    req.webhook = {};
    Object.assign(req.webhook, { secretIndex: 1 });
    await run(webhookBasicAuth({ username, password }), req);
    expect(req.webhook).toEqual({ secretIndex: 1, credentialIndex: 0 });
  });

  test("forgets the verdict of an earlier guard when a later one refuses", async () => {
    const req = requestOf([right]);
    await run(webhookBasicAuth({ username, password }), req);
    expect(verifiedCredential(req)).toBeDefined();
    await run(webhookBasicAuth({ username, password: "other" }), req);
    expect(verifiedCredential(req)).toBeUndefined();
  });

  test("believes nothing that stands on the request", async () => {
    const req = requestOf([]);
    req.webhook = { credentialIndex: 0 };
    req.headers.authorization = right;
    expect(codeOf(await run(webhookBasicAuth({ username, password }), req))).toBe("credentials-missing");
    expect(verifiedCredential(req)).toBeUndefined();
  });

  test("passes with a verdict that is there at once", async () => {
    for (const options of [{ username, password }, { verify: () => true }]) {
      expect(await run(webhookBasicAuth(options), requestOf([right]))).toBeUndefined();
    }
  });

  test.each<[string, unknown]>([
    ["false", false],
    ["undefined", undefined],
    ["1", 1],
    ["a text", "true"],
    ["an object", { rows: 1 }],
    ["an empty array", []],
    ["a boxed true", Object(true)],
    ["a promise of false", Promise.resolve(false)],
    ["a promise of 1", Promise.resolve(1)],
    ["null", null],
    ["a promise of null", Promise.resolve(null)],
  ])("takes %s of verify for a refusal", async (_name, answer) => {
    const guard = webhookBasicAuth({ verify: () => answer as boolean });
    expect(codeOf(await run(guard, requestOf([right])))).toBe("credentials-wrong");
  });

  test("asks verify with the text and the request", async () => {
    const verify = jest.fn(() => true);
    const req = requestOf([basic("m\u00fcller", "a:b")]);
    expect(await run(webhookBasicAuth({ verify }), req)).toBeUndefined();
    expect(verify.mock.calls).toEqual([["m\u00fcller", "a:b", req]]);
  });

  test.each([
    ["an empty password", basic(username, "")],
    ["an empty username", basic("", password)],
    ["a control character", basic(username, "a\u0007")],
    ["missing padding", basic("ab", "c").replace(/=+$/, "")],
    ["base64url", basic("~~~", "???").replaceAll("+", "-").replaceAll("/", "_")],
  ])("does not ask verify about %s", async (_name, field) => {
    const verify = jest.fn(() => true);
    expect(codeOf(await run(webhookBasicAuth({ verify }), requestOf([field])))).toBe("credentials-malformed");
    expect(verify).not.toHaveBeenCalled();
  });

  test("answers 503 when verify throws, rejects or does not answer", async () => {
    const cause = new Error("no database");
    const verifies = [
      () => {
        throw cause;
      },
      () => Promise.reject(cause),
      () => new Promise<boolean>(() => undefined),
    ];
    for (const [index, verify] of verifies.entries()) {
      const error = await run(webhookBasicAuth({ verify, timeoutMs: 20, status: 404 }), requestOf([right]));
      expect(error).toMatchObject({ status: 503, code: "credentials-unavailable" });
      if (index < 2) expect((error as Error).cause).toBe(cause);
      else expect((error as Error).cause).toMatchObject({ message: "verify did not answer within 20 ms" });
    }
  });

  test("names another realm, and no challenge beside another status", async () => {
    const named = await run(webhookBasicAuth({ username, password, realm: "Lender A" }), requestOf([]));
    expect(named).toMatchObject({
      headers: { "WWW-Authenticate": 'Basic realm="Lender A", charset="UTF-8"' },
    });
    const hidden = await run(webhookBasicAuth({ username, password, status: 404 }), requestOf([]));
    expect(hidden).toMatchObject({ status: 404, code: "credentials-missing" });
    expect((hidden as { headers: unknown }).headers).toEqual({});
  });
});
