// The whole server of the README, as a process that is configured by its environment and told to end.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { generateKeyPair, sampleBusiness } from "@countersign/sandbox";
import Database from "libsql";
import { notifyTwice, payTwice } from "./send.mjs";

const { keyid, publicKeyPem, privateKeyPem: privateKey } = generateKeyPair();
const endpoint = {
  path: "/webhooks/3f9a",
  username: "service",
  password: "test-password",
  secret: "test-secret",
};
const port = await freePort();
const server = spawn(process.execPath, ["app.js"], {
  env: {
    ...process.env,
    NODE_ENV: "production",
    DATABASE_FILE: "platform.db",
    PORT: String(port),
    KEYID: keyid,
    PUBLIC_KEY: publicKeyPem,
    ALLOW_IPS: "192.0.2.10",
    TRUST_PROXY: "loopback",
    WEBHOOK_PATH: endpoint.path,
    WEBHOOK_USERNAME: endpoint.username,
    WEBHOOK_PASSWORD: endpoint.password,
    WEBHOOK_SECRET: endpoint.secret,
  },
  stdio: ["ignore", "pipe", "inherit"],
});
const exit = once(server, "exit");
try {
  const [said] = await Promise.race([once(server.stdout, "data"), exit]);
  assert.equal(String(said), `listening on port ${port}\n`);
  const database = new Database("platform.db");
  const { businessId, iban } = sampleBusiness;
  database.prepare("INSERT INTO businesses VALUES (?, ?)").run(businessId, iban);
  const origin = `http://127.0.0.1:${port}`;
  await notifyTwice(origin, endpoint);
  const paid = await payTwice(origin, { keyid, privateKey });
  const payouts = database.prepare("SELECT idempotency_key FROM payouts").all();
  assert.deepEqual(payouts, [{ idempotency_key: paid.idempotency_key }]);
  const events = database.prepare("SELECT event_id FROM events").all();
  assert.deepEqual(events, [{ event_id: "event-1" }]);
} finally {
  server.kill("SIGTERM");
}
assert.deepEqual(await exit, [0, null]);

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port: free } = probe.address();
  probe.close();
  await once(probe, "close");
  return free;
}
