import type { RequestListener } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { startSandbox, type Sandbox } from "@countersign/devtools/sandbox";
import { withServer } from "@countersign/test-support/servers/wire.ts";
import { CliBench, expectOneLine, run, type Run } from "./cli-bench.ts";

// TEST VALUES.
const apiKey = "test-api-key";
const given = ["--username", "test-user", "--password", "test-password", "--secret", "test-secret"];
const httpsUrl = "https://platform.example/hooks/0123456789abcdef";

const bench = new CliBench();
let sandbox: Sandbox;
beforeAll(async () => {
  await bench.open();
  sandbox = await startSandbox({ apiKey, allowHttp: true });
});
afterAll(async () => {
  await sandbox.close();
  await bench.close();
});

function create(...args: readonly string[]): Promise<Run> {
  return run(["endpoint", "create", "--base-url", sandbox.url, "--api-key", apiKey, ...args]);
}

const silence: RequestListener = () => {};

/** Runs against a service that answers everything by itself. */
async function createAt(listener: RequestListener, ...args: readonly string[]): Promise<Run> {
  // Who answers has the time that a busy machine needs.
  const common = ["--retries", "0", "--timeout", listener === silence ? "300" : "10000"];
  return await withServer(listener, (port) =>
    create("--base-url", `http://127.0.0.1:${port}`, ...common, ...args),
  );
}

describe("countersign endpoint generate", () => {
  const args = ["endpoint", "generate", "--platform-url", "https://platform.example/base"];

  test("prints what the platform needs, and the form for customer support with the same values", async () => {
    const { code, out, err } = await run(args);
    const [values = "", form = ""] = out.split("For customer support, by a way that nobody else can read:\n");
    const shown = Object.fromEntries(
      [...values.matchAll(/^(\w+) +(\S+)$/gm)].map(([, name, value]) => [name, value]),
    );
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(shown["path"]).toMatch(/^\/base\/[0-9a-f]{40}$/);
    expect(JSON.parse(form)).toEqual({
      url: `https://platform.example${shown["path"]}`,
      basic_auth_username: shown["username"],
      basic_auth_password: shown["password"],
      signature_secret: shown["secret"],
    });
  });

  test("--json prints what generateEndpoint() returns", async () => {
    const { code, out } = await run([...args, "--json"]);
    const { url, path, username, password, secret, supportForm } = JSON.parse(out);
    expect(code).toBe(0);
    expect(url).toBe(`https://platform.example${path}`);
    expect(supportForm).toEqual({
      url,
      basic_auth_username: username,
      basic_auth_password: password,
      signature_secret: secret,
    });
  });

  test.each([
    ["an http URL", ["endpoint", "generate", "--platform-url", "http://platform.example"]],
    ["an http URL of this machine", ["endpoint", "generate", "--platform-url", "http://127.0.0.1:3000"]],
    ["no URL", ["endpoint", "generate"]],
  ])("refuses %s: the service takes https alone", async (_title, wrong) => {
    const { code, out, err } = await run(wrong);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("--platform-url");
  });
});

describe("countersign endpoint create", () => {
  test("registers what it is given, and repeats no credential", async () => {
    const { code, out, err } = await create("--url", httpsUrl, ...given);
    const [registered] = sandbox.deliveries.endpoints().slice(-1);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(registered).toEqual({ id: expect.any(String), url: httpsUrl });
    expect(out).toBe(`created (status 201)\nid        ${registered?.id}\nurl       ${httpsUrl}\n`);
  });

  test("makes up a path and credentials, registers them and shows them once", async () => {
    const { code, out } = await create(
      "--generate",
      "--platform-url",
      "https://platform.example/base",
      "--json",
    );
    const report = JSON.parse(out) as { id: string; generated: Record<string, string> };
    expect(code).toBe(0);
    expect(report).toMatchObject({
      created: true,
      status: 201,
      error: null,
      generated: {
        url: expect.stringMatching(/^https:\/\/platform\.example\/base\/[0-9a-f]{40}$/),
        path: expect.stringMatching(/^\/base\/[0-9a-f]{40}$/),
        username: expect.any(String),
        password: expect.any(String),
        secret: expect.any(String),
      },
    });
    expect(sandbox.deliveries.endpoints()).toContainEqual({ id: report.id, url: report.generated["url"] });
  });

  test("sends the values that it shows", async () => {
    let body: unknown;
    const { out } = await createAt(
      (req, res) => {
        req.on("data", (chunk: Buffer) => (body = JSON.parse(chunk.toString())));
        req.on("end", () => res.writeHead(201).end());
      },
      "--generate",
      "--platform-url",
      "http://127.0.0.1:3000",
    );
    const shown = Object.fromEntries(
      [...out.matchAll(/^(\w+) +(\S+)$/gm)].map(([, name, value]) => [name, value]),
    );
    expect(body).toEqual({
      url: `http://127.0.0.1:3000${shown["path"]}`,
      auth_username: shown["username"],
      auth_password: shown["password"],
      signature_secret: shown["secret"],
    });
    expect(shown["url"]).toBe(`http://127.0.0.1:3000${shown["path"]}`);
  });

  test("--json holds no credential that was given, even where the answer repeats them", async () => {
    const { code, out } = await createAt(
      (req, res) => {
        req.pipe(res.writeHead(201));
      },
      "--url",
      httpsUrl,
      "--json",
      ...given,
    );
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({
      created: true,
      status: 201,
      id: null,
      url: httpsUrl,
      error: null,
      generated: null,
    });
  });

  test("a refusal ends with 1 and shows the answer, no secret and no control character", async () => {
    const { code, out } = await createAt(
      (req, res) => {
        res.writeHead(422);
        res.write("\u001B[2J<no> ");
        req.pipe(res);
      },
      "--url",
      httpsUrl,
      ...given,
    );
    expect(code).toBe(1);
    expect(out).toMatch(/^not created: the service refused the webhook endpoint \(status 422\)\n/);
    expect(out).toContain("\\u{1b}[2J<no> ");
    expect(out).not.toMatch(/test-password|test-secret|test-api-key/);
    expect(out).not.toContain("\u001B");
  });

  test.each<[string, RequestListener, number, RegExp]>([
    [
      "an outage",
      (_req, res) => res.writeHead(503, { "retry-after": "7" }).end("later"),
      1,
      /Retry-After: 7 s\n  later/,
    ],
    ["a redirect", (_req, res) => res.writeHead(302, { location: "/" }).end(), 1, /redirect/],
    ["a page", (_req, res) => res.end("<html>"), 1, /no JSON/],
    ["silence", silence, 3, /within 300 ms/],
    ["a closed connection", (_req, res) => res.destroy(), 3, /connection/],
  ])("%s ends with the code and keeps what was made up", async (_name, listener, code, line) => {
    const args = ["--generate", "--platform-url", "https://platform.example"];
    const ended = await createAt(listener, ...args);
    expect(ended.code).toBe(code);
    expect(ended.out).toMatch(line);
    expect(ended.out).toMatch(/^secret {4}[0-9a-f]{64}$/m);
    expect(ended.out).toContain("may exist");
    const { created, generated, error } = JSON.parse((await createAt(listener, ...args, "--json")).out) as {
      created: boolean;
      generated: object;
      error: object;
    };
    expect({ created, generated, error }).toEqual({
      created: false,
      generated: expect.objectContaining({ secret: expect.any(String) }),
      error: expect.objectContaining({ code: expect.any(String), message: expect.any(String) }),
    });
  });

  test("a refusal shows nothing of what was made up", async () => {
    const { out } = await createAt(
      (_req, res) => res.writeHead(400).end(),
      "--generate",
      "--platform-url",
      "https://platform.example",
    );
    expect(out).not.toContain("secret");
  });

  const all = given.join(" ");
  const generate = "--generate --platform-url";
  test.each<[string, string, RegExp]>([
    ["nothing of the endpoint", "", /--url is missing; --generate/],
    ["no username", `--url ${httpsUrl}`, /--username is missing/],
    ["no password", `--url ${httpsUrl} --username u`, /--password is missing/],
    ["no secret", `--url ${httpsUrl} --username u --password p`, /--secret is missing/],
    ["an empty secret", `--url ${httpsUrl} ${all} --secret=`, /--secret must be a non-empty string/],
    ["a colon", `--url ${httpsUrl} ${all} --username a:b`, /--username must be .* holds a colon/],
    ["an empty API key", `--url ${httpsUrl} ${all} --api-key=`, /--api-key must be a non-empty string/],
    ["a relative --url", `--url /hooks ${all}`, /--url must be https/],
    ["no scheme", `--base-url localhost:4000 --url ${httpsUrl} ${all}`, /--base-url must be https/],
    ["--generate without --platform-url", "--generate", /--platform-url is missing/],
    ["--platform-url without --generate", "--platform-url https://p.example", /goes with --generate/],
    ["a bad --platform-url", `${generate} ftp://x`, /--platform-url must be/],
    ["--generate and --url", `--generate --url ${httpsUrl}`, /--generate' cannot be used with option '--url/],
    ["--generate and --secret", "--generate --secret x", /cannot be used with option '--secret/],
    ["a bad --timeout", `--url ${httpsUrl} ${all} --timeout 1s`, /--timeout: expected an integer/],
    ["a bad --retries", `--url ${httpsUrl} ${all} --retries 11`, /expected an integer from 0 to 10/],
    ["http elsewhere", `--url http://p.example ${all}`, /--url: the service takes https endpoints alone/],
    [
      "http to a platform elsewhere",
      `${generate} http://p.example`,
      /--platform-url: the service takes https/,
    ],
    [
      "http to a service elsewhere",
      `--base-url http://service.example --url ${httpsUrl} ${all}`,
      /--base-url: the request carries the API key .*: --allow-http is for payout/,
    ],
  ])("%s ends with 2 and one line, and sends nothing", async (_name, args, line) => {
    const before = sandbox.deliveries.endpoints().length;
    expectOneLine(await create(...args.split(" ").filter(Boolean)), 2, line);
    expect(sandbox.deliveries.endpoints()).toHaveLength(before);
  });

  test("reads the API key and the credentials from the environment", async () => {
    const env = {
      COUNTERSIGN_API_KEY: apiKey,
      WEBHOOK_USERNAME: "test-user",
      WEBHOOK_PASSWORD: "test-password",
      WEBHOOK_SECRET: "test-secret",
    };
    const args = ["endpoint", "create", "--base-url", sandbox.url];
    expect(await bench.spawned([...args, "--url", httpsUrl], env)).toMatchObject({ code: 0, err: "" });
    expect(
      await bench.spawned([...args, "--generate", "--platform-url", "https://platform.example"], env),
    ).toMatchObject({ code: 2, err: expect.stringContaining("environment variable 'WEBHOOK_USERNAME'") });
    expect(await bench.spawned([...args, "--url", httpsUrl], { ...env, WEBHOOK_SECRET: "" })).toMatchObject({
      code: 2,
    });
  });

  test.each([[["endpoint"]], [["endpoint", "remove"]]])("%p is an error of usage", async (args) => {
    expect(await run(args)).toMatchObject({ code: 2, out: "" });
  });
});
