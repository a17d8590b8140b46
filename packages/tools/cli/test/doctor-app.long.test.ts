import { describe, expect, test } from "@jest/globals";
import { expectOneLine, run, type Run, spawnCli } from "./cli-bench.ts";
import { folder, imports, moduleOf, mounted, publicKeyPem, secrets, type Report } from "./doctor-bench.ts";

const now = Math.floor(Date.now() / 1000);
const day = 86_400;

/** In a process of its own, as a person calls it. */
function doctor(file: string, env: Record<string, string> = {}, ...args: readonly string[]): Promise<Run> {
  // A busy machine takes longer than the default of ten seconds to load an app.
  const inTime = args.includes("--timeout") ? [] : ["--timeout", "60000"];
  return spawnCli(["doctor", "--app", file, ...inTime, ...args], {
    env: { NODE_ENV: "test", ...env },
    cwd: folder,
  });
}

async function report(text: string, env?: Record<string, string>): Promise<Report> {
  const file = moduleOf(text);
  const { code, out, err } =
    env === undefined
      ? await run(["doctor", "--app", file, "--json", "--timeout", "60000"])
      : await doctor(file, env, "--json");
  expect(err).toBe("");
  for (const secret of secrets) expect(out).not.toContain(secret);
  const document = JSON.parse(out) as Report;
  expect(code).toBe(document.errors > 0 ? 1 : 0);
  return document;
}

async function idsOf(text: string, env?: Record<string, string>): Promise<string[]> {
  const { findings } = await report(text, env);
  // Each of these apps has them.
  return findings.map(({ id }) => id).filter((id) => id !== "memory-store");
}

const pays = (options: string): string => `app.post("/pay", payout(${options}));\nexport { app };`;
const hooks = (options: string): string => `app.use("/hooks", webhook(${options}));\nexport { app };`;

const parsedBefore = ["parser-before-guard"];
const behindText = `
  const router = express.Router();
  router.post("/pay", payout());
  app.use(express.text({ type: "*/*" }));
  app.use("/api", router);
  export { app };`;
const shortOnes = '{ basicAuth: { username: "u", password: "p" }, hmac: { secret: "s" } }';
const withoutPassword = '{ basicAuth: { username: "u", password: process.env.NOT_SET } }';
const forgetful = `
  const names = ["claim", "read", "heartbeat", "complete", "release", "hold", "resolve", "prune", "close"];
  const rest = Object.fromEntries(names.map((name) => [name, (...args) => store[name](...args)]));
  ${pays("{ idempotency: { store: { ...rest, retentionMs: 1000 } } }")}`;
const uncovered = `
  app.post("/x", httpSignatureVerify({
    origin: "https://pay.example",
    keys: { k: pem },
    requiredComponents: ["@method", "@target-uri"],
    requiredParameters: ["created", "keyid"],
    allowUnsignedBody: true,
    allowUnsignedQuery: true,
  }));
  export { app };`;
const uncoveredIds = ["components-missing", "body-unsigned", "query-unsigned", "nonce-missing"];

describe("countersign doctor --app", () => {
  test("finds nothing in an app that is right, and says what it has looked at", async () => {
    const text = `${imports}
      app.use("/hooks", webhook());
      app.use("/other", express.json());
      app.use(express.json({ verify: captureRawBody }));
      ${mounted}`;
    expect(await idsOf(text)).toEqual([]);
    const { code, out } = await doctor(moduleOf(text));
    expect(code).toBe(0);
    expect(out).toMatch(
      /^looked at\n {2}app \S+ \(Express; memoryIdempotencyStore, .*payoutEndpoint.*\): options /m,
    );
  });

  test.each<[string, string, readonly string[]]>([
    ["a parser in front", `app.use(express.json());\n${mounted}`, parsedBefore],
    ["a parser on the path", `app.use("/pay", express.json());\n${mounted}`, parsedBefore],
    ["a parser on another path", `app.use("/other", express.json());\n${mounted}`, []],
    ["a parser behind", `${mounted}\napp.use(express.json());`, []],
    ["a parser in the route", `app.post("/pay", express.json(), payout());\nexport { app };`, parsedBefore],
    ["a parser in front of a router", behindText, parsedBefore],
    ["a parser that keeps bytes", `app.use(express.json({ verify: captureRawBody }));\n${mounted}`, []],
    ["other types", `app.use(express.urlencoded(), express.text(), express.raw());\n${mounted}`, []],
    ["bytes", `app.use(express.raw({ type: () => true }));\n${mounted}`, []],
    [
      "a controller that calls the endpoint",
      `const router = express.Router(), endpoint = payout();
      router.post("/pay", (req, res, next) => endpoint(req, res, next));
      app.use("/api", router);
      export { app };`,
      ["endpoint-wrapped"],
    ],
    ["trust in everybody", `app.set("trust proxy", true);\n${mounted}`, ["trust-proxy-everybody"]],
    ["a hop count as a text", `app.set("trust proxy", "2");\n${mounted}`, ["trust-proxy-misread"]],
    ["no trust", `app.set("trust proxy", false);\n${mounted}`, ["trust-proxy-unset"]],
    ["no guard", "export { app };", ["no-guards"]],
    ["no app", "payout();", ["app-unknown"]],
    ["any address", pays("{ addresses: { dangerouslyAllowAnyAddress: true } }"), ["address-any"]],
    ["any IBAN", pays("{ findBusiness: undefined }"), ["beneficiary-unchecked"]],
    ["plain http", hooks("{ https: { dangerouslyAllowHttp: true } }"), ["webhook-http"]],
    ["short credentials", hooks(shortOnes), ["credentials-short", "credentials-short"]],
    ["a store that cannot list and forgets", forgetful, ["keys-not-listable", "retention-short"]],
    ["signatures that cover too little", uncovered, uncoveredIds],
    ["an empty secret", hooks(`{ hmac: { secret: process.env.NOT_SET ?? "" } }`), ["credentials-empty"]],
    ["a missing password", hooks(withoutPassword), ["credentials-empty"]],
    ["a key that is none", pays(`{ signature: { keys: { k: "no key" } } }`), ["key-refused"]],
    ["an unknown option", pays("{ nonsense: 1 }"), ["options-refused"]],
    ["a throw", `throw new Error("DATABASE_URL is not set");`, ["app-failed"]],
    ["an end of the process", `console.error("no PORT"); process.exit(3);`, ["app-failed"]],
    ["a server", 'app.post("/pay", payout());\napp.listen(0, () => console.log("on"));', ["app-listens"]],
    ["a function that makes it", `app.post("/pay", payout());\nexport default async () => ({ app });`, []],
  ])("knows %s", async (_name, text, ids) => {
    const errors = new Set(["credentials-empty", "key-refused", "options-refused", "app-failed"]);
    const found = await idsOf(`${imports}\n${text}`);
    // What was built before something failed is examined too.
    expect(ids.some((id) => errors.has(id)) ? found.filter((id) => errors.has(id)) : found).toEqual(ids);
  });

  test.each<[string, object, readonly string[], others?: string]>([
    ["expired", { notAfter: now - day }, ["key-expired"]],
    ["revoked", { revokedAt: now - day }, ["key-revoked"]],
    ["not yet valid", { notBefore: now + day }, ["key-not-yet-valid"]],
    ["soon over", { notAfter: now + day }, ["key-ends-soon"], ""],
    ["alone and expired", { notAfter: now - day }, ["key-none-valid", "key-expired"], ""],
    ["there twice", {}, ["key-duplicate"], ', "l": pem'],
  ])("knows a key that is %s", async (_name, times, ids, others = ', "l": other') => {
    const key = `importVerificationKey("k", pem, ${JSON.stringify(times)})`;
    expect(await idsOf(`${imports}\n${pays(`{ signature: { keys: { "k": ${key}${others} } } }`)}`)).toEqual(
      ids,
    );
  });

  test("takes memory stores and test keys for errors in production alone", async () => {
    const text = `${imports}\n${pays(`{ signature: { keys: { "test-1": pem } } }`)}`;
    const severities = async (env: string) => {
      const { findings } = await report(text, { NODE_ENV: env });
      return findings.map(({ id, severity }) => `${severity} ${id}`);
    };
    expect(new Set(await severities("development"))).toEqual(new Set(["info memory-store"]));
    expect(new Set(await severities("production"))).toEqual(
      new Set(["error memory-store", "error key-for-tests"]),
    );
  });

  test("ends with 1 for errors, and for warnings with --strict", async () => {
    const file = moduleOf(`${imports}\n${pays("{ findBusiness: undefined }")}`);
    expect((await doctor(file)).code).toBe(0);
    expect((await doctor(file, {}, "--strict")).code).toBe(1);
  });

  test("knows Express 4, in CommonJS", async () => {
    const text = `
      const express = require("express4");
      const { payoutEndpoint } = require("countersign/payout");
      const { memoryIdempotencyStore } = require("@countersign/idempotency");
      const { memoryNonceStore } = require("@countersign/http-signature-verify");
      const app = express();
      app.use(express.json());
      app.post("/pay", payoutEndpoint({
        addresses: { allow: ["192.0.2.1"] },
        signature: { keys: { k: ${JSON.stringify(publicKeyPem)} }, nonces: memoryNonceStore() },
        idempotency: { store: memoryIdempotencyStore() },
        findBusiness: () => true,
      }));
      module.exports = { app };`;
    const { out } = await doctor(moduleOf(text, "app.cjs"), {}, "--json");
    const { findings, subjects } = JSON.parse(out) as Report;
    expect(subjects[0]).toContain("(Express; ");
    expect(findings.map(({ id }) => id)).toEqual([
      "parser-before-guard",
      "trust-proxy-unset",
      "memory-store",
      "memory-store",
    ]);
  });

  test("gives an app that hangs up in time, and lets nothing of it go on", async () => {
    const file = moduleOf("setInterval(() => {}, 1000); await new Promise(() => {});");
    const { code, out } = await doctor(file, {}, "--timeout", "500");
    expect({ code, out }).toEqual({ code: 1, out: expect.stringMatching(/it was not loaded within 500 ms/) });
  });

  test("shows a message without what steers a terminal, and in one line", async () => {
    const { out } = await doctor(moduleOf('throw new Error("first\\nsecond \\u001b[2J");'));
    expect(out).toMatch(/first second \\u\{1b\}\[2J/);
    expect(out).not.toContain("\u001B");
  });

  test.each<[string, readonly string[], RegExp]>([
    ["nothing to look at", [], /nothing to look at: give --app, --url/],
    ["a file that is missing", ["--app", "/nowhere/app.js"], /--app \/nowhere\/app\.js: is no file/],
    ["a URL that is none", ["--url", "platform"], /--url: expected http/],
    ["a bad --timeout", ["--app", "x", "--timeout", "soon"], /--timeout: expected an integer/],
  ])("%s ends with 2 and one line", async (_name, args, line) => {
    expectOneLine(await spawnCli(["doctor", ...args], { env: {}, cwd: folder }), 2, line);
  });
});

const fastifyImports = `
import Fastify from "fastify";
import { idempotencyHook, payoutPlugin, webhookPlugin } from "@countersign/fastify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { createWebhookHandler } from "countersign/webhooks";
const memory = { allowInProduction: true };
const store = memoryIdempotencyStore({ ...memory, retentionMs: 30 * 86_400_000 });
const payout = (options) => payoutPlugin({
  url: "/pay",
  addresses: { allow: ["192.0.2.1"] },
  signature: { keys: { "service-1": ${JSON.stringify(publicKeyPem)} }, nonces: memoryNonceStore(memory) },
  idempotency: { store, scope: "payout" },
  findBusiness: () => true,
  handler: async () => ({}),
  ...options,
});
const webhook = (options) => webhookPlugin({
  url: "/hooks/0123456789abcdef",
  basicAuth: { username: "service", password: "test-password-of-the-webhook" },
  hmac: { secret: "test-secret-of-the-webhook-endpoint" },
  handler: createWebhookHandler({ store, fallback: () => {} }),
  ...options,
});
const behindProxy = { clientAddress: (request) => request.ip, scheme: (request) => request.protocol };
const guard = idempotencyHook({ store, scope: "refund", key: () => "k", fingerprint: () => "f" });
const handler = async () => ({});
`;

describe("countersign doctor --app, of a Fastify app", () => {
  const everybody = "{ trustProxy: true }";
  const inScope = `app.register(async (scope) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    scope.register(payout({ ...behindProxy, findBusiness: undefined }));
  });`;
  const hookInScope = `app.register(async (scope) => {
    scope.addHook("preParsing", guard);
    scope.post("/refunds", handler);
  });`;
  const listed = '{ trustProxy: ["192.0.2.7"] }';
  const both = "app.register(payout(behindProxy)).register(webhook(behindProxy));";
  const bySocket = "app.register(webhook({ clientAddress: behindProxy.clientAddress }));";
  const behind = 'app.post("/refunds", { preHandler: guard, handler });';
  const inFront = 'app.post("/refunds", { onRequest: [guard], handler });';

  test.each<[string, statements: string, readonly string[], options?: string]>([
    ["proxies that are listed, and plugins that are told of them", both, [], listed],
    ["plugins in a scope of their own, which takes its time", inScope, ["beneficiary-unchecked"]],
    ["a payout that goes by the socket", "app.register(payout());", ["connection-unset"]],
    ["a webhook that goes by the socket", bySocket, ["connection-unset"]],
    ["trust in everybody", "app.register(payout(behindProxy));", ["trust-proxy-everybody"], everybody],
    ["trust that nobody asks for", "app.register(payout());", ["connection-unset"], everybody],
    ["the hook behind the parser", behind, []],
    ["the hook in front of the parser", inFront, ["hook-before-body"]],
    ["the hook in front of the parser, in a scope", hookInScope, ["hook-before-body"]],
  ])("with %s", async (_name, statements, ids, options = "") => {
    await expectFound(`export const app = Fastify(${options});\n${statements}`, ids);
  });

  test("that a function makes", () =>
    expectFound(
      'export const createApp = () => Fastify().post("/refunds", { preParsing: guard, handler });',
      ["hook-before-body"],
    ));

  async function expectFound(text: string, ids: readonly string[]): Promise<void> {
    const { subjects, findings } = await report(fastifyImports + text);
    const found = findings.map(({ id }) => id).filter((id) => id !== "memory-store");
    expect({ subjects, ids: found }).toEqual({
      subjects: [expect.stringContaining("(Fastify; ")],
      ids,
    });
  }

  test("says which hook, and where", async () => {
    const { findings } = await report(
      `${fastifyImports}export const app = Fastify();\napp.post("/refunds", { onRequest: guard, handler });`,
    );
    expect(findings.map(({ message }) => message)).toContain(
      "idempotencyHook is an onRequest step of /refunds, where no body has been read",
    );
  });
});
