// The program itself: it starts by its environment, serves, and ends.
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterTest, testFolder } from "@countersign/test-support/runs/after-test.ts";
import {
  byProxy,
  eachOnce,
  exchange,
  payWithTooManyLines,
  recordedOnce,
  startExample,
} from "@countersign/test-support/servers/example.ts";
import { sampleBusiness } from "@countersign/devtools/sandbox";
import { expect, test } from "@jest/globals";
import Database from "libsql";

const program = new URL("../dist/server.js", import.meta.url);

test("pays a payout once, handles an event once, and ends with 0 when it is told to", async () => {
  const folder = testFolder();
  const example = await startExample(program, [], { folder });
  afterTest(() => example.stop());
  const database = new Database(path.join(folder, "platform.db"));
  const { businessId, iban } = sampleBusiness;
  database.prepare("INSERT INTO businesses VALUES (?, ?)").run(businessId, iban);
  database.close();
  expect(await exchange(example.url, byProxy)).toEqual(eachOnce);
  expect(example.records()).toEqual(recordedOnce);
  expect(await payWithTooManyLines(example.url, byProxy)).toBe(431);
  expect(example.records()).toEqual(recordedOnce);
  expect(await example.stop()).toBe(0);
});

const settings = {
  PORT: "0",
  DATABASE_FILE: ":memory:",
  KEYID: "service-1",
  // TEST KEY of RFC 9421 appendix B.1.4.
  PUBLIC_KEY: "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
  ALLOW_IPS: "192.0.2.10",
  TRUST_PROXY: "loopback",
  WEBHOOK_PATH: "/webhooks/3f9c2a7be1d04c55",
  WEBHOOK_USERNAME: "service",
  WEBHOOK_PASSWORD: "test-password",
  WEBHOOK_SECRET: "test-secret-of-webhooks",
};

test.each<[what: string, changes: Readonly<Record<string, string>>, message: string]>([
  ["no key", { PUBLIC_KEY: "" }, "PUBLIC_KEY is not set"],
  ["a key that is none", { PUBLIC_KEY: "no key" }, "importVerificationKey"],
  ["every address", { ALLOW_IPS: "0.0.0.0/0" }, "ipAllowlist"],
  ["a proxy that does not exist", { TRUST_PROXY: "nobody" }, "invalid IP address"],
  ["no secret", { WEBHOOK_SECRET: "" }, "WEBHOOK_SECRET is not set"],
])("does not start with %s", async (_what, changes, message) => {
  const child = spawn(process.execPath, [fileURLToPath(program)], {
    env: { ...settings, ...changes },
    stdio: ["ignore", "ignore", "pipe"],
  });
  afterTest(() => child.kill("SIGKILL"));
  const chunks: Buffer[] = [];
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  expect(await once(child, "close")).toEqual([1, null]);
  expect(Buffer.concat(chunks).toString()).toContain(message);
});
