// A sandbox with its page, and a platform that receives its payouts and webhooks.
import { once } from "node:events";
import { createServer } from "node:http";
import express from "express";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "countersign/payout";
import { generateKeyPair, startSandbox } from "@countersign/devtools/sandbox";

/** TEST CREDENTIALS. */
export const seeded = {
  apiKey: "seeded-api-key-7f41",
  password: "seeded-password-92bc",
  secret: "seeded-secret-5d08",
};

/** Everything that no answer may hold: the credentials in each form, and the lines of the private key. */
export function secretsOf({ privateKeyPem }) {
  const lines = privateKeyPem.split("\n").filter((line) => line !== "" && !line.startsWith("-----"));
  const texts = [...Object.values(seeded), `service:${seeded.password}`];
  return [
    ...lines,
    ...texts,
    ...texts.map((text) => Buffer.from(text).toString("base64").replace(/=+$/, "")),
  ];
}

/** `answers` decides how the platform answers webhooks: a status, or undefined to echo every header and 200. */
export async function startScene({ answers = () => 200, sandbox: options = {} } = {}) {
  const pair = generateKeyPair({ keyid: "sandbox-key" });
  const app = express();
  app.post(
    "/api/v1/transaction",
    payoutEndpoint({
      addresses: { allow: ["127.0.0.1"] },
      signature: { keys: { [pair.keyid]: pair.publicKeyPem }, nonces: memoryNonceStore() },
      idempotency: { store: memoryIdempotencyStore() },
      findBusiness: () => true,
    }),
    (_req, res) => res.json({ status: "acknowledged" }),
  );
  app.post("/refuses/everything", (_req, res) => res.status(401).end());
  let received = 0;
  app.post("/hooks/4f2a91", (req, res) => {
    req.resume();
    req.on("end", () => {
      received += 1;
      // What a careless platform does: it answers with what it was sent.
      res.status(answers(received)).json({ received: req.headers });
    });
  });
  const server = createServer(app);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const platform = `http://127.0.0.1:${server.address().port}`;
  const page = {
    payoutUrl: `${platform}/api/v1/transaction`,
    privateKey: pair.privateKeyPem,
    keyid: pair.keyid,
  };
  const sandbox = await startSandbox({ apiKey: seeded.apiKey, allowHttp: "loopback", page, ...options });
  const endpoint = (path = "/hooks/4f2a91") => ({
    url: platform + path,
    username: "service",
    password: seeded.password,
    secret: seeded.secret,
  });
  const register = (path) => sandbox.deliveries.addEndpoint({ ...endpoint(path), allowHttp: "loopback" });
  return {
    sandbox,
    endpoint,
    register,
    secrets: secretsOf(pair),
    async close() {
      await sandbox.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
