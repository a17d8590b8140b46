import { hasSubscribers, subscribe, unsubscribe } from "node:diagnostics_channel";
import { spawnSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { get } from "node:http";
import { fileURLToPath } from "node:url";
import { guardChannel, GuardError } from "@countersign/core";
import { publishNotice, verdicts } from "@countersign/core/internal";
import { inspector, type InspectorOptions } from "@countersign/devtools/inspector";
import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { signByHand } from "../../../../endpoints/countersign/test/payout/sign-by-hand.ts";
import { InspectorBench, payoutPath, payoutText, seeded, signer } from "./inspector-bench.ts";

const bench = new InspectorBench();
beforeEach(() => bench.open());

const paths = ["/inspector/overview", "/inspector/requests", "/inspector/requests/1"];

describe("the page", () => {
  test("is served to anybody on this machine, under a strict policy", async () => {
    for (const path of ["/", "/page/request.js", "/page/kit.js"]) {
      const { status, headers } = await bench.ask(path, { "X-Page-Token": "" });
      expect(status).toBe(200);
      expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self'/);
    }
  });

  test("has its address with the token as a fragment, and listens on loopback alone", () => {
    const { url, pageUrl } = bench.inspector;
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(pageUrl).toMatch(new RegExp(`^${url}/#token=[\\w-]{24}$`));
  });
});

describe("an answer", () => {
  test("is for whoever has the token of this start", async () => {
    await bench.pay("key-1");
    for (const path of paths) {
      expect(await bench.ask(path)).toMatchObject({ status: 200, headers: { "cache-control": "no-store" } });
      for (const token of ["", "x".repeat(32)])
        expect(await bench.ask(path, { "X-Page-Token": token })).toMatchObject({
          status: 401,
          body: { code: "token-wrong" },
        });
    }
    expect((await bench.ask("/inspector/stream", { "X-Page-Token": "" })).status).toBe(401);
    const other = await inspector();
    const { status } = await bench.ask("/inspector/overview", {
      "X-Page-Token": /token=(.+)$/.exec(other.pageUrl)?.[1] ?? "",
    });
    await other.close();
    expect(status).toBe(401);
  });

  test("is to be read alone, and only where there is one", async () => {
    for (const path of [...paths, "/"])
      expect(await bench.ask(path, {}, "POST")).toMatchObject({ status: 405 });
    for (const path of ["/inspector", "/inspector/keys", "/sandbox/overview", "/page/../package.json"])
      expect(await bench.ask(path)).toMatchObject({ status: 404 });
    expect(await bench.ask("/inspector/verdicts/%ff")).toMatchObject({ status: 400 });
  });
});

describe("an option", () => {
  test.each<[string, unknown, string]>([
    ["port", { port: 65_536 }, "port"],
    ["host of a network", { host: "0.0.0.0" }, "host"],
    ["kept", { kept: 0 }, "kept"],
    ["kept times bodyLimitBytes", { kept: 10_000, bodyLimitBytes: 1_048_576 }, "1 GiB"],
    ["signature without keys", { signature: {} }, "keys"],
    ["signature with a key in place of keys", { signature: { keys: "pem" } }, "keys"],
    ["signature without a key", { signature: { keys: {} } }, "keys"],
    ["hmac without a secret", { hmac: {} }, "secrets"],
    ["hmac with a lookup", { hmac: { secrets: () => [] } }, "secrets"],
    ["hmac with an unknown scheme", { hmac: { secret: "seeded", scheme: "none" } }, "scheme"],
    ["basicAuth without a password", { basicAuth: { username: "u" } }, "basicAuth"],
    ["basicAuth with a function", { basicAuth: { verify: () => true } }, "basicAuth"],
    ["basicAuth with a colon", { basicAuth: { username: "a:b", password: "seeded" } }, "basicAuth"],
    ["addresses", { addresses: { allow: ["x"] } }, "addresses"],
    ["stores", { stores: { payouts: {} } }, "stores"],
    ["work", { work: { main: { summaries: () => [] } } }, "work"],
    ["work in place of its name", { work: { list: () => [], summaries: () => [] } }, "work"],
    ["secrets", { secrets: "seeded" }, "secrets"],
    ["an unknown one", { secret: "seeded" }, "secret"],
    ["no object", null, "options"],
  ])("is refused: %s", async (_name, options, named) => {
    const before = hasSubscribers(guardChannel.name);
    const started = inspector(options as InspectorOptions);
    await expect(started).rejects.toThrow(TypeError);
    await expect(started).rejects.toThrow(named);
    await expect(started).rejects.toThrow(/^inspector: /);
    await expect(started).rejects.not.toThrow("seeded");
    expect(hasSubscribers(guardChannel.name)).toBe(before);
  });

  test("of the checks is taken as it is", async () => {
    const nonces = { claim: () => "fresh" as const };
    const keys = { [signer.keyid]: signer.publicKeyPem };
    const started = await inspector({
      host: "localhost",
      signature: { keys, nonces, engine: "native", threadPool: false, limit: "1mb", storeTimeoutMs: 5 },
      hmac: { secrets: ["old-secret", "new-secret"], limit: "1mb", timeoutMs: 5, status: 404 },
      basicAuth: { credentials: [{ username: "u", password: "p" }], realm: "hooks", status: 404 },
    });
    expect(started.url).toMatch(/^http:\/\/localhost:\d+$/);
    await started.close();
  });

  test("that allows production does not exist", async () => {
    const before = process.env["NODE_ENV"];
    process.env["NODE_ENV"] = "production";
    try {
      await expect(inspector()).rejects.toThrow(/inspector: .*NODE_ENV is production/);
      await expect(inspector({ allowInProduction: true } as never)).rejects.toThrow("NODE_ENV is production");
    } finally {
      process.env["NODE_ENV"] = before;
    }
  });

  test("names a port that is taken", async () => {
    const { port } = new URL(bench.inspector.url);
    await expect(inspector({ port: Number(port) })).rejects.toMatchObject({ code: "EADDRINUSE" });
  });
});

const nodeChannels = [
  "http.server.request.start",
  "http.server.response.finish",
  "tracing:fastify.request.handler:error",
];

test("close() ends every subscription, and the server", async () => {
  await bench.close();
  const heard = (): boolean[] =>
    [
      guardChannel.name,
      "countersign:notice",
      "countersign:thrown",
      "tracing:countersign:store:end",
      ...nodeChannels,
    ].map((name) => hasSubscribers(name));
  const before = heard();
  const started = await inspector();
  expect(heard()).toEqual(before.map(() => true));
  const asked = await fetch(started.url);
  expect(asked.status).toBe(200);
  await Promise.all([started.close(), started.close()]);
  expect(heard()).toEqual(before);
  await expect(fetch(started.url)).rejects.toThrow("fetch failed");
});

test("it keeps no process alive", () => {
  const script =
    'import { inspector } from "@countersign/devtools/inspector"; console.log((await inspector()).url);';
  const cwd = fileURLToPath(new URL("../..", import.meta.url));
  const args = ["--input-type=module", "--eval", script];
  const { status, stdout } = spawnSync(process.execPath, args, { cwd, encoding: "utf8", timeout: 30_000 });
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\n$/)]);
});

describe("what is kept", () => {
  test("are the newest, and an older one is said to be gone", async () => {
    await bench.open({ kept: 2 });
    await bench.pay("key-1");
    const { verdicts: shown } = (await bench.newest()) as { verdicts: { id: string }[] };
    await bench.pay("key-1");
    await bench.pay("key-3");
    const { body } = await bench.ask("/inspector/requests");
    expect(body).toMatchObject({ total: 2, requests: [{ id: 3 }, { id: 2 }] });
    expect((await bench.ask("/inspector/overview")).body).toMatchObject({ counts: { pass: 1, reject: 1 } });
    for (const path of ["requests/1", `verdicts/${shown[0]?.id}`])
      expect(await bench.ask(`/inspector/${path}`)).toMatchObject({
        status: 404,
        body: { code: "request-not-kept" },
      });
  });

  test("stays bounded over a thousand requests, each with a name of its own", async () => {
    await bench.open({ kept: 100 });
    for (let index = 0; index < 1_000; index += 1) {
      const req = { method: "POST", url: `/p/${index}`, rawHeaders: ["Host", "h"] };
      for (let each = 0; each < 3; each += 1) {
        const error = new GuardError({ status: 401, code: "no", message: "no" });
        verdicts.publish({ name: `guard-${index}`, req }, verdicts.start(), error);
      }
      for (let each = 0; each < 5; each += 1)
        publishNotice({ guard: "guard", code: "told", message: "x".repeat(10_000), req });
    }
    const { body } = await bench.ask("/inspector/requests");
    expect(body["total"]).toBe(100);
    expect(body["requests"]).toHaveLength(50);
    const { body: overview, text } = await bench.ask("/inspector/overview");
    expect(overview).toMatchObject({ counts: { pass: 0, reject: 100, error: 0 } });
    expect(overview["guards"]).toHaveLength(100);
    expect(text.length).toBeLessThan(20_000);
    const {
      life,
      verdicts: shown,
      target,
    } = (await bench.newest()) as {
      life: { text: string }[];
      verdicts: [];
      target: string;
    };
    expect([target, shown.length, life.length]).toEqual(["/p/999", 3, 5]);
    for (const entry of life) expect(entry.text).toHaveLength(512);
  });

  test("of one request has an end", async () => {
    const req = {
      method: "POST",
      url: "/p",
      rawHeaders: Array.from({ length: 5000 }, () => "h".repeat(100)),
    };
    for (let each = 0; each < 500; each += 1) {
      verdicts.publish({ name: "guard", req }, verdicts.start(), undefined);
      publishNotice({ guard: "guard", code: "told", message: "m", req });
    }
    const detail = await bench.newest();
    expect((detail["verdicts"] as []).length).toBe(100);
    expect((detail["life"] as []).length).toBe(200);
    expect(JSON.stringify(detail["headers"]).length).toBeLessThan(80_000);
  });

  test("is nothing of a request that no guard has decided", async () => {
    const { port } = new URL(bench.origin);
    await new Promise((resolve) => get({ port, path: "/other" }, (res) => res.resume().on("end", resolve)));
    expect((await bench.ask("/inspector/requests")).body).toEqual({ requests: [], total: 0 });
  });
});

test("a request that cannot be looked at is a warning, and reaches neither the check nor other subscribers", async () => {
  const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  const seen: unknown[] = [];
  const other = (event: unknown): void => void seen.push(event);
  subscribe(guardChannel.name, other);
  const hostile = Object.freeze({
    get method(): string {
      throw new Error("not yours");
    },
  });
  for (const req of [hostile, {}, { rawHeaders: [1, null], raw: 5, url: 7 }])
    verdicts.publish({ name: "guard", req }, verdicts.start(), new Error("own"));
  unsubscribe(guardChannel.name, other);
  expect(seen).toHaveLength(3);
  expect(warn.mock.calls.map(([message]) => message)).toEqual([
    expect.stringContaining('inspector could not tell of an event: Error: "not yours"'),
  ]);
  warn.mockRestore();
  const { body } = await bench.ask("/inspector/requests");
  expect(body).toMatchObject({ total: 2, requests: [{ outcome: "error" }, { outcome: "error" }] });
});

describe("no secret", () => {
  const { privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const jwk = privateKey.export({ format: "jwk" });
  const own = { apiKey: "seeded-api-key-7f41", cookie: "seeded-cookie-e19d", token: "seeded-token-88aa" };
  const { username, password, secret, other } = seeded;
  // All forms are in masking.test.ts.
  const hidden: readonly string[] = [
    ...pem.split("\n").filter((line) => line !== "" && !line.startsWith("-----")),
    ...[password, secret, other, ...Object.values(own), `${username}:${password}`].flatMap((text) => [
      text,
      JSON.stringify(text).slice(1, -1),
      encodeURIComponent(text),
      Buffer.from(text).toString("hex"),
      Buffer.from(text).toString("base64").replace(/=+$/, ""),
    ]),
  ];
  const echoes = [...hidden, pem, JSON.stringify(jwk), Buffer.from(`xx${secret}`).toString("base64")];
  const headers = {
    "X-Api-Key": own.apiKey,
    Cookie: `a=1; session=${own.cookie}; b=true`,
    "X-Echo": echoes.join(" ").replaceAll("\n", ""),
    "Proxy-Authorization": `Bearer ${own.token}`,
  };

  async function answers(): Promise<string> {
    const listed = (await bench.ask("/inspector/requests?limit=200")).body["requests"] as { id: number }[];
    const all = [...paths, ...listed.map(({ id }) => `/inspector/requests/${id}`)];
    const texts = await Promise.all(
      all.map(async (path) => {
        const answer = await bench.ask(path);
        expect(answer.status).toBe(200);
        return answer.text + JSON.stringify(answer.headers);
      }),
    );
    return texts.join("\n");
  }

  // Base64 of what is longer is looked into as well.
  function found(text: string): readonly string[] {
    const decoded = [...text.matchAll(/[\w+/-]{12,}/g)].map(([part]) =>
      Buffer.from(part, "base64").toString("latin1"),
    );
    const searched = [text, ...decoded].join("\n");
    return [...hidden, String(jwk.d)].filter((each) => searched.includes(each));
  }

  test("is in any answer, whatever a request echoes", async () => {
    const streamed = bench.stream((text) => text.includes('"changed":['));
    await bench.notify(JSON.stringify({ echoes }), headers);
    await bench.notify(Buffer.concat([Buffer.from([0xff]), Buffer.from(echoes.join(" "))]), headers);
    await bench.notify("{}", {
      ...headers,
      Authorization: `Basic ${Buffer.from(`${username}:${password}?`).toString("base64")}`,
    });
    const body = JSON.stringify({ idempotency_key: `${secret}.a.b`, business_id: password });
    await bench.pay("key-1", { body, headers });
    const signed = signByHand(signer, {
      path: payoutPath,
      body: payoutText("k"),
      keyid: other,
      nonce: secret,
    });
    await bench.pay("key-2", { body: payoutText("k"), headers: { ...headers, ...signed } });
    const text = await answers();
    expect(found(text)).toEqual([]);
    expect(found(await streamed)).toEqual([]);
    expect(text).toContain("(not shown)");
    expect(text).toContain("[masked]");
    // What is no secret is there.
    expect(text).toContain("X-Echo");
    expect(text).toContain(signer.keyid);
  });

  test("is in an answer when it stands over the end of what is kept of a body", async () => {
    await bench.open({ bodyLimitBytes: 100 });
    await bench.notify(`"${"x".repeat(95)}${secret}${"y".repeat(9000)}"`);
    const { body } = (await bench.newest()) as { body: { text: string; isCut: boolean } };
    expect(body).toEqual({
      state: "read",
      bytes: expect.any(Number),
      isCut: true,
      text: `"${"x".repeat(95)}[mas`,
    });
  });

  test("of a query is in a target", async () => {
    const req = { method: "GET", url: `/p?api_key=${own.apiKey}&page=2`, rawHeaders: ["X-Note", own.apiKey] };
    verdicts.publish({ name: "guard", req }, verdicts.start(), undefined);
    expect(await bench.newest()).toMatchObject({
      target: "/p?api_key=[masked]&page=2",
      headers: [["X-Note", "[masked]"]],
    });
  });
});
