// The lending service's side: signed payouts and webhooks, as the proxy in front of the platform hands them on.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  buildPayoutRequest,
  buildWebhookRequest,
  createEnvelope,
  createPayoutInstruction,
  sendPayout,
  sendRequest,
} from "@countersign/devtools/sandbox";

const from = { "X-Forwarded-For": "192.0.2.10", "X-Forwarded-Proto": "https" };

/** Sends one payout twice, which is answered 200 and then 409, and returns its instruction. */
export async function payTwice(origin, { keyid, privateKey, instruction = {} }) {
  const body = createPayoutInstruction(instruction);
  const url = `${origin}/api/v1/transaction`;
  const statuses = [];
  for (let attempt = 0; attempt < 2; attempt++) {
    const request = buildPayoutRequest({ url, body, privateKey, keyid, headers: from });
    statuses.push((await sendPayout(request)).status);
  }
  assert.deepEqual(statuses, [200, 409]);
  return body;
}

/** Sends one webhook with a wrong password, which finds nothing, and twice with the right one, which is answered 200. */
export async function notifyTwice(origin, { path, username, password, secret }) {
  const events = [{ event_id: "event-1", type: "buyer.approved", data: { buyer_id: "buyer-1" } }];
  const body = createEnvelope({ events, now: BigInt(Date.now()) * 1_000_000n });
  const statuses = [];
  for (const used of ["wrong-test-password", password, password]) {
    const credentials = { username, password: used, secret };
    const request = buildWebhookRequest({ url: origin + path, allowHttp: true, body, ...credentials });
    const headers = { ...request.headers, ...from };
    statuses.push((await sendRequest({ ...request, headers })).status);
  }
  assert.deepEqual(statuses, [404, 200, 200]);
}

/** Runs `send` with the origin of the app on a free port of loopback. */
export async function whileListening(app, send) {
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await send(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}
