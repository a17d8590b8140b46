import { describe, expect, test, afterAll, beforeAll, beforeEach } from "@jest/globals";
import { createServiceClient, type WebhookEndpoint } from "countersign/client";
import { apiKey, endpoint, clientOf, failureOf, startService, type TestService } from "./service.ts";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { testAuthority } from "@countersign/test-support/servers/certificates.ts";

type ServiceClientOptions = Parameters<typeof createServiceClient>[0];

const good = { baseUrl: "https://service.example/base", apiKey };
const allowing = (baseUrl: string): object => ({ baseUrl, dangerouslyAllowHttp: true });
const build = (options: object): unknown => createServiceClient(options as ServiceClientOptions);

describe("createServiceClient", () => {
  const times = { timeoutMs: 1, retryDelayMs: 1, totalTimeoutMs: 1 };

  test.each<[string, object]>([
    ["the least", {}],
    ["every option", { fetch, retries: 0, ...times, dangerouslyAllowHttp: false }],
    ["an upper-case scheme and host", { baseUrl: "HTTPS://Service.Example:8443/Base/" }],
    ["an IPv6 host", { baseUrl: "https://[2001:db8::1]" }],
    ["http to an address of this machine", allowing("http://127.0.0.1:3000")],
    ["http to another of its addresses", allowing("http://127.9.8.7")],
    ["http to its IPv6 address", allowing("http://[::1]:3000")],
    ["http to its name", allowing("http://localhost/x")],
  ])("accepts %s", (_name, changes) => {
    expect(build({ ...good, ...changes })).toEqual({ createWebhookEndpoint: expect.any(Function) });
  });

  test.each<[string, object | undefined, RegExp]>([
    ["nothing", undefined, /must be an object/],
    ["an unknown option", { timeout: 1 }, /unknown option timeout/],
    ["no baseUrl", { baseUrl: undefined }, /option baseUrl must be a string/],
    ["another scheme", { baseUrl: "ftp://service.example" }, /option baseUrl must be https/],
    ["http", { baseUrl: "http://127.0.0.1" }, /option baseUrl must be https; http is for a loopback/],
    ["http elsewhere", allowing("http://service.example"), /must be https; http/],
    ["http to what looks local", allowing("http://127.0.0.1.example"), /https; http/],
    ["credentials", { baseUrl: "https://user:test-secret@service.example" }, /without credentials/],
    ["a query", { baseUrl: "https://service.example/?test-secret=1" }, /must have no query/],
    ["a space", { baseUrl: "https://service.example/a b" }, /in ASCII/],
    ["a line end", { baseUrl: "https://service.example\n" }, /in ASCII/],
    ["a backslash", { baseUrl: "https:\\\\service.example" }, /must be https/],
    ["dot segments", { baseUrl: "https://service.example/a/../b" }, /no dot segments/],
    ["encoded dot segments", { baseUrl: "https://service.example/a/%2e%2e/b" }, /no dot segments/],
    ["an empty segment", { baseUrl: "https://service.example/a//b" }, /no empty path segment/],
    ["a bad port", { baseUrl: "https://service.example:99999" }, /host or port/],
    ["no apiKey", { apiKey: undefined }, /option apiKey must be a non-empty string/],
    ["an empty apiKey", { apiKey: "" }, /option apiKey must be a non-empty string/],
    ["an apiKey with a line end", { apiKey: "test-secret\n" }, /option apiKey must be printable ASCII/],
    ["an apiKey with a space", { apiKey: "test-secret x" }, /option apiKey must be printable ASCII/],
    ["an apiKey outside ASCII", { apiKey: "test-secrét" }, /option apiKey must be printable ASCII/],
    ["a fetch that is none", { fetch: "fetch" }, /option fetch must be a function/],
    ["timeoutMs 0", { timeoutMs: 0 }, /option timeoutMs must be an integer from 1 to 600000/],
    ["retries below 0", { retries: -1 }, /option retries must be an integer from 0 to 10/],
  ])("refuses %s", (_name, changes, message) => {
    const error = thrownBy(() => build((changes && { ...good, ...changes }) as object));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^createServiceClient: /);
    expect(error).toMatchObject({ factory: "createServiceClient" });
    expect(error.message).not.toContain("test-secr");
  });
});

describe("createWebhookEndpoint", () => {
  const sent: unknown[] = [];
  const fetchOnce = (_url: string, { body }: RequestInit): Promise<Response> => {
    sent.push(JSON.parse(body as string));
    return Promise.resolve(Response.json({}, { status: 201 }));
  };
  const client = createServiceClient({ ...good, fetch: fetchOnce });
  const local = createServiceClient({ ...good, fetch: fetchOnce, dangerouslyAllowHttp: true });

  test.each<[string, object | undefined, RegExp]>([
    ["nothing", undefined, /must be an object/],
    ["an unknown member", { secret: "test-secret" }, /unknown option secret/],
    ["no url", { url: undefined }, /option url must be a string/],
    ["http", { url: "http://127.0.0.1/w" }, /option url must be https; http is for a loopback/],
    ["credentials in the url", { url: "https://u:test-secret@platform.example/w" }, /without credentials/],
    ["a fragment", { url: "https://platform.example/w#x" }, /fragment/],
    ["a url that a parser rewrites", { url: "https://platform.example/a/../w" }, /no dot segments/],
    ["an empty username", { authUsername: "" }, /option authUsername must be a non-empty string/],
    [
      "a username with a colon",
      { authUsername: "test-secret:x" },
      /option authUsername must be .* holds a colon/,
    ],
    ["a control character", { authUsername: "test-secret\u0000" }, /option authUsername/],
    ["an empty password", { authPassword: "" }, /option authPassword must be a non-empty string/],
    ["a password with a line end", { authPassword: "test-secret\n" }, /option authPassword/],
    ["a password with half a surrogate pair", { authPassword: "test-secret\uD800" }, /option authPassword/],
    ["an empty secret", { signatureSecret: "" }, /option signatureSecret/],
  ])("refuses %s and sends nothing", async (_name, changes, message) => {
    sent.length = 0;
    const error: unknown = await client
      .createWebhookEndpoint((changes && { ...endpoint, ...changes }) as WebhookEndpoint)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect((error as TypeError).message).toMatch(message);
    expect((error as TypeError).message).toMatch(/^createWebhookEndpoint: /);
    expect(error).toMatchObject({ factory: "createWebhookEndpoint" });
    expect((error as TypeError).message).not.toContain("test-secret");
    expect(sent).toEqual([]);
  });

  test.each([
    [{ timeoutMs: 1 }, /unknown option timeoutMs/],
    [{ signal: 5_000 }, /option signal must be an AbortSignal, got 5000/],
    [{ signal: new AbortController() }, /option signal must be an AbortSignal/],
  ])("refuses unfit options of the call (%#)", async (options, message) => {
    await expect(client.createWebhookEndpoint(endpoint, options as object)).rejects.toThrow(message);
  });

  test.each(["https://platform.example", "https://Platform.Example:8443/W?a=b", "https://[2001:db8::1]/w"])(
    "sends the url %p as it is",
    async (url) => {
      sent.length = 0;
      await client.createWebhookEndpoint({ ...endpoint, url });
      expect(sent).toEqual([expect.objectContaining({ url })]);
    },
  );

  test("registers http of this machine, and of no other, by the exception", async () => {
    await expect(
      local.createWebhookEndpoint({ ...endpoint, url: "http://localhost:3000/w" }),
    ).resolves.toMatchObject({
      status: 201,
    });
    await expect(
      local.createWebhookEndpoint({ ...endpoint, url: "http://platform.example/w" }),
    ).rejects.toThrow(/option url must be https/);
  });
});

function thrownBy(run: () => unknown): Error {
  try {
    run();
  } catch (error) {
    return error as Error;
  }
  throw new Error("nothing was thrown");
}

const authority = testAuthority();
const directory = mkdtempSync(join(tmpdir(), "countersign-client-"));
const caFile = join(directory, "ca.pem");
let service: TestService;
beforeAll(async () => {
  writeFileSync(caFile, authority.cert);
  service = await startService(authority.issue());
});
beforeEach(() => {
  service.received.length = 0;
});
afterAll(async () => {
  await service.close();
  rmSync(directory, { recursive: true, force: true });
});

describe("over https", () => {
  test("sends nothing to a server without a trusted certificate, and tries once", async () => {
    const error = await failureOf(
      clientOf(service.baseUrl, { dangerouslyAllowHttp: false }).createWebhookEndpoint(endpoint),
    );
    expect(error).toMatchObject({ code: "certificate-rejected" });
    expect(service.received).toHaveLength(0);
  });

  test("trusts the issuers of NODE_EXTRA_CA_CERTS, and leaves no timer that keeps the process", async () => {
    expect(await registerInChild({ NODE_EXTRA_CA_CERTS: caFile })).toBe(
      '{"status":201,"body":{"id":"endpoint-1"}} 0',
    );
    expect(service.received).toHaveLength(1);
  });

  test("refuses to work where the verification of certificates is turned off", async () => {
    expect(await registerInChild({ NODE_TLS_REJECT_UNAUTHORIZED: "0" })).toMatch(
      /^TypeError createServiceClient: NODE_TLS_REJECT_UNAUTHORIZED=0/,
    );
    expect(service.received).toHaveLength(0);
  });
});

/** What a process of its own prints: Node reads these variables when it starts. */
function registerInChild(env: Readonly<Record<string, string>>): Promise<string> {
  const program = `
    import { createServiceClient } from "countersign/client";
    try {
      const client = createServiceClient({ baseUrl: ${JSON.stringify(service.baseUrl)}, apiKey: "test-api-key" });
      const answer = JSON.stringify(await client.createWebhookEndpoint(${JSON.stringify(endpoint)}));
      const timers = process.getActiveResourcesInfo().filter((resource) => resource === "Timeout");
      console.log(answer, timers.length);
    } catch (error) {
      console.log(error.name, error.message);
    }`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((resolve) => child.on("close", () => resolve(output.trim())));
}
