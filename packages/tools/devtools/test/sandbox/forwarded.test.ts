import type { IncomingHttpHeaders, Server } from "node:http";
import { afterEach, expect, test } from "@jest/globals";
import { close, listen } from "@countersign/test-support/servers/http-client.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/index.ts";

// TEST VALUES.
const apiKey = "test-api-key";
const credentials = { username: "service", password: "test-password", secret: "test-secret" };
const asProxy = { "x-forwarded-for": "192.0.2.10", "x-forwarded-proto": "https" };

let sandbox: Sandbox | undefined;
let server: Server | undefined;
afterEach(async () => {
  await sandbox?.close();
  if (server !== undefined) await close(server);
});

/** The fields of a webhook, of a spoilt one and of a payout of the page, and those that the page shows of the delivery. */
async function sentBy(options: Partial<Parameters<typeof startSandbox>[0]>) {
  const received: IncomingHttpHeaders[] = [];
  const listening = await listen((req, res) => {
    received.push(req.headers);
    res.end();
  });
  server = listening.server;
  const url = `http://127.0.0.1:${listening.port}`;
  sandbox = await startSandbox({ apiKey, allowHttp: "loopback", page: true, ...options });
  sandbox.deliveries.addEndpoint({ url: `${url}/hooks`, allowHttp: "loopback", ...credentials });
  sandbox.changeBuyerStatus("buyer-1", "ACTIVE");
  await sandbox.deliveries.idle();
  await sandbox.deliveries.control.spoil(1, "body-re-serialised");
  const payout = await fetch(`${sandbox.url}/sandbox/payouts`, {
    method: "POST",
    headers: { "X-API-KEY": apiKey, "Content-Type": "application/json" },
    body: JSON.stringify({ url: `${url}/pay` }),
  });
  expect(payout.status).toBe(201);
  expect(received).toHaveLength(3);
  const shown = Object.fromEntries(sandbox.deliveries.control.detail(1)?.request.headers ?? []);
  return { received, shown };
}

test("a sandbox with forwardedFor sends everything as the proxy that ends TLS, and shows that", async () => {
  const { received, shown } = await sentBy({ forwardedFor: "192.0.2.10" });
  expect(received).toMatchObject([asProxy, asProxy, asProxy]);
  expect(shown).toMatchObject({ "X-Forwarded-For": "192.0.2.10", "X-Forwarded-Proto": "https" });
});

test("a sandbox without it claims no proxy", async () => {
  const { received, shown } = await sentBy({});
  const names = [...received.map((headers) => Object.keys(headers)), Object.keys(shown)].flat();
  expect(names.filter((name) => /^x-forwarded/i.test(name))).toEqual([]);
});

test.each(["", "me", "192.0.2.10, 127.0.0.1", 1])(
  "a sandbox refuses forwardedFor %p",
  async (forwardedFor) => {
    const options = { apiKey, forwardedFor: forwardedFor as string };
    await expect(startSandbox(options)).rejects.toThrow(
      /startSandbox: option forwardedFor must be an IP address/,
    );
  },
);
