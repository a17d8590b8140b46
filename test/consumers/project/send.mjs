import { once } from "node:events";
import {
  buildPayoutRequest,
  createEnvelope,
  createPayoutInstruction,
  generateKeyPair,
  sendPayout,
  sendWebhook,
} from "@countersign/devtools/sandbox";

// Mounts the endpoint, sends one payout twice, and fails the process unless it is answered 200 and then 409.
export async function payOnce({ express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint }) {
  const { keyid, publicKeyPem, privateKeyPem } = generateKeyPair();
  const app = express();
  const endpoint = payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: { [keyid]: publicKeyPem }, nonces: memoryNonceStore() },
    idempotency: { store: memoryIdempotencyStore() },
  });
  app.post("/pay", endpoint, (req, res) => res.json({ paid: req.payout.idempotencyKey }));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}/pay`;
  const body = createPayoutInstruction();
  const statuses = [];
  for (let attempt = 0; attempt < 2; attempt++) {
    const { status } = await sendPayout(buildPayoutRequest({ url, body, privateKey: privateKeyPem, keyid }));
    statuses.push(status);
  }
  server.close();
  if (statuses.join() !== "200,409") throw new Error(`answered ${statuses.join()}`);
}

// Mounts the endpoint, sends one webhook twice and one with a wrong secret: 200, 200 and 404, handled once.
export async function handleOnce({ express, memoryIdempotencyStore, createWebhookHandler, webhookEndpoint }) {
  let handled = 0;
  const handler = createWebhookHandler({
    store: memoryIdempotencyStore(),
    fallback: () => void handled++,
  });
  const credentials = { username: "service", password: "test-password" };
  const secret = "test-secret";
  const app = express();
  const https = { dangerouslyAllowHttp: true };
  app.use(
    "/hooks/test",
    webhookEndpoint({ basicAuth: credentials, hmac: { secret }, handler, https, onReject() {} }),
  );
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}/hooks/test`;
  const body = createEnvelope({
    events: [{ type: "ping", data: {} }],
    now: BigInt(Date.now()) * 1_000_000n,
  });
  const statuses = [];
  for (const used of [secret, secret, "wrong-test-secret"]) {
    const { status } = await sendWebhook({ url, ...credentials, secret: used, body, allowHttp: true });
    statuses.push(status);
  }
  server.close();
  if (statuses.join() !== "200,200,404" || handled !== 1)
    throw new Error(`answered ${statuses.join()}, handled ${handled}`);
}
