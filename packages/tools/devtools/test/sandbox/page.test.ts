import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { generateKeyPair } from "../../src/sandbox/key-pair.ts";
import { startSandbox } from "../../src/sandbox/service/sandbox.ts";
import { PageBench, secrets, seeded } from "./page-bench.ts";

const bench = new PageBench();
beforeAll(() => bench.open());
afterAll(() => bench.close());

// Its own files, and those that it shares with other pages.
const folders = ["../../page/sandbox/", "../../page/shared/"].map(
  (folder) => new URL(folder, import.meta.url),
);
const fileOf = new Map(
  folders.flatMap((folder) => readdirSync(folder).map((name) => [name, new URL(name, folder)])),
);
const names = [...fileOf.keys()];
const textOf = (name: string): string => readFileSync(fileOf.get(name) ?? "", "utf8");
const pathOf = (name: string): string => (name === "index.html" ? "/" : `/page/${name}`);
const status = { body: { status: "ACTIVE" } };

describe("the page's files", () => {
  test.each(names)("%s is served as it is, to anybody on this machine", async (name) => {
    const answer = await bench.ask("GET", pathOf(name), { headers: { "X-Page-Token": "" } });
    expect(answer.status).toBe(200);
    expect(answer.text).toBe(textOf(name));
    expect(answer.headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "no-store",
    });
    expect(answer.headers["content-type"]).toMatch(
      /^(text\/(html|css|javascript)|image\/svg\+xml); charset=utf-8$/,
    );
  });

  test("the policy lets nothing run and nothing be asked but the page's own", async () => {
    const { headers } = await bench.ask("GET", "/");
    const policy = String(headers["content-security-policy"]);
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';/,
    );
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("trusted-types 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*|data:/);
  });

  test("hold no inline script or style, and name no other host", () => {
    for (const name of names) {
      const text = textOf(name).replaceAll("http://www.w3.org/2000/svg", "");
      expect({ name, found: /\bstyle=|\son\w+="|<style|[iI]nnerHTML|eval\(/.exec(text)?.[0] }).toEqual({
        name,
        found: undefined,
      });
      expect({ name, hosts: text.match(/https?:\/\/(?!127\.0\.0\.1)[\w.]+/g) }).toEqual({
        name,
        hosts: null,
      });
    }
    const html = textOf("index.html");
    expect(html.match(/<script[^>]*>/g)).toEqual(['<script type="module" src="/page/app.js">']);
  });

  test("answers other methods with 405, and what is no file of it with 401", async () => {
    expect(await bench.ask("POST", "/", { body: {} })).toMatchObject({ status: 405 });
    for (const path of [
      "/page/",
      "/page/none.js",
      "/page/../package.json",
      "/index.html",
      "/page/%2e%2e/package.json",
    ])
      expect(await bench.ask("GET", path, { headers: { "X-Page-Token": "" } })).toMatchObject({
        status: 401,
      });
  });

  test("there is no page unless it is asked for", async () => {
    const sandbox = await startSandbox({ apiKey: seeded.apiKey });
    expect(sandbox.pageUrl).toBeUndefined();
    expect((await fetch(sandbox.url)).status).toBe(401);
    expect((await fetch(`${sandbox.url}/sandbox/overview`, { headers: { "X-Page-Token": "" } })).status).toBe(
      401,
    );
    await sandbox.close();
  });
});

describe("Host", () => {
  const port = "4000";
  test.each([
    "127.0.0.1",
    `127.0.0.1:${port}`,
    "127.1.2.3",
    "localhost",
    `LOCALHOST:${port}`,
    `[::1]:${port}`,
  ])("%s is this machine", async (host) => {
    const headers = { Host: host };
    expect(await bench.ask("GET", "/", { headers })).toMatchObject({ status: 200 });
    expect(await bench.ask("GET", "/sandbox/overview", { headers })).toMatchObject({ status: 200 });
  });

  test.each([
    "attacker.example",
    `attacker.example:${port}`,
    "localhost.attacker.example",
    "127.0.0.1.attacker.example",
    "127.0.0.1@attacker.example",
    "192.168.0.1",
    "0.0.0.0",
    "[::]",
    "localhost.",
  ])("%s is refused, with the token too", async (host) => {
    const headers = { Host: host };
    for (const path of ["/", "/page/app.js", "/sandbox/overview"]) {
      const answer = await bench.ask("GET", path, { headers });
      expect(answer).toMatchObject({ status: 403, body: { code: "host-refused" } });
    }
    const write = { ...status, headers: { Host: host, Origin: `http://${host}` } };
    expect(await bench.ask("POST", "/sandbox/buyers/h/status", write)).toMatchObject({ status: 403 });
  });
});

describe("a request with the page's token", () => {
  test.each<[string, Record<string, string>]>([
    ["from another site", { "Sec-Fetch-Site": "cross-site" }],
    ["from another port of this machine", { "Sec-Fetch-Site": "same-site" }],
    ["that somebody typed in", { "Sec-Fetch-Site": "none" }],
    ["with another origin", { Origin: "https://attacker.example" }],
    ["with the origin of another port", { Origin: "http://127.0.0.1:1" }],
    ["with the origin null", { Origin: "null" }],
    ["with its own origin over https", { Origin: "https://127.0.0.1" }],
    ["without an origin", { Origin: "" }],
  ])("writes nothing %s", async (_name, headers) => {
    const answer = await bench.ask("POST", "/sandbox/buyers/never/status", { ...status, headers });
    expect(answer).toMatchObject({ status: 403, body: { code: "origin-refused" } });
    expect(() => bench.sandbox.buyerStatus("never")).toThrow("no buyer");
  });

  test.each<[string, Record<string, string>]>([
    ["another site", { "Sec-Fetch-Site": "cross-site" }],
    ["another origin", { Origin: "https://attacker.example" }],
  ])("reads nothing for %s", async (_name, headers) => {
    expect(await bench.ask("GET", "/sandbox/overview", { headers })).toMatchObject({ status: 403 });
    expect(await bench.ask("GET", "/sandbox/stream", { headers })).toMatchObject({ status: 403 });
  });

  test.each([
    ["none", ""],
    ["another one", "x".repeat(32)],
    ["the API key", seeded.apiKey],
  ])("is refused with %s instead", async (_name, token) => {
    const headers = { "X-Page-Token": token };
    for (const path of ["/sandbox/overview", "/sandbox/stream", "/sandbox/deliveries"])
      expect(await bench.ask("GET", path, { headers })).toMatchObject({ status: 401 });
    expect(await bench.ask("POST", "/sandbox/buyers/never/status", { ...status, headers })).toMatchObject({
      status: 401,
    });
  });

  test("is good for this start alone", async () => {
    const other = new PageBench();
    await other.open();
    afterTest(() => other.close());
    const headers = { "X-Page-Token": bench.token };
    expect(await other.ask("GET", "/sandbox/overview", { headers })).toMatchObject({ status: 401 });
  });

  test("writes from the page", async () => {
    expect(await bench.ask("POST", "/sandbox/buyers/page/status", status)).toMatchObject({ status: 200 });
    expect(bench.sandbox.buyerStatus("page")).toBe("ACTIVE");
  });
});

describe("an option of the page", () => {
  test.each<[string, unknown, string]>([
    ["page", "yes", "page"],
    ["an unknown one", { token: "x" }, "page.token"],
    ["a key without keyid", { privateKey: generateKeyPair().privateKeyPem }, "page.keyid"],
    ["what is no key", { privateKey: "seeded", keyid: "k" }, "page.privateKey"],
    ["what is no URL", { payoutUrl: "ftp://x" }, "page.payoutUrl"],
    ["what is no file name", { keyFile: 1 }, "page.keyFile"],
  ])("is refused: %s", async (_name, page, named) => {
    const started = startSandbox({ apiKey: "k", page: page as never });
    await expect(started).rejects.toThrow(named);
    await expect(started).rejects.not.toThrow("seeded");
  });
});

describe("no secret", () => {
  const lists = ["deliveries", "buyers", "sellers", "payment-requests", "payouts", "confirmations"];
  const readable = ["deliveries/1", "payouts/1", "overview", ...lists];

  test("is in an answer when it stands over the end of what is shown", async () => {
    const own = new PageBench();
    await own.open();
    afterTest(() => own.close());
    own.register();
    own.before = "x".repeat(1024 - 21);
    own.sandbox.changeBuyerStatus("buyer-1", "SUSPENDED");
    await eventually(() => own.sandbox.deliveries.list()[0]?.state === "delivered");
    const { text } = await own.ask("GET", "/sandbox/deliveries/1");
    own.before = "x".repeat(16_384 - 21);
    const payout = await own.ask("POST", "/sandbox/payouts", { body: { url: `${own.platform}/pay` } });
    for (const shown of [text, payout.text]) {
      expect(shown).toMatch(/x{1003}\{\\"known/);
      expect(shown).not.toContain(seeded.apiKey.slice(0, 6));
    }
  });

  test("is in any answer for the page or its stream, whatever the platform sends back", async () => {
    bench.register(`/hooks/${encodeURIComponent(seeded.secret)}`);
    bench.status = 500;
    const streamed = bench.stream((text) => text.includes('"payouts"'));
    bench.sandbox.changeBuyerStatus(seeded.password, "SUSPENDED");
    await eventually(() => bench.sandbox.deliveries.list().some(({ attempts }) => attempts.length > 0));
    const payout = await bench.ask("POST", "/sandbox/payouts", { body: { url: `${bench.platform}/pay` } });
    expect(payout).toMatchObject({ status: 201, body: { asExpected: false } });
    const answers = [
      payout,
      ...(await Promise.all(readable.map((path) => bench.ask("GET", `/sandbox/${path}`)))),
      await bench.ask("POST", "/sandbox/deliveries/1/spoil", { body: { part: "password" } }),
      await bench.ask("POST", "/sandbox/deliveries/1/pause", { body: {} }),
      await bench.ask("POST", "/sandbox/deliveries/resend", { body: { id: "1" } }),
      await bench.ask("POST", "/sandbox/deliveries/1/drop", { body: {} }),
    ];
    for (const { status: got } of answers) expect(got).toBeLessThan(300);
    expect(answers[3]?.text).toContain("[masked]");
    const files = await Promise.all(names.map((name) => bench.ask("GET", pathOf(name))));
    const all = [...answers, ...files].map(({ text, headers }) => text + JSON.stringify(headers));
    for (const text of [...all, await streamed])
      for (const secret of secrets) expect(text.includes(secret)).toBe(false);
  });
});
