// What the lending service sends to the platform of a scene: as it should be, and every so often otherwise.
import { setTimeout as sleep } from "node:timers/promises";
import {
  buildPayoutRequest,
  buildWebhookRequest,
  createEnvelope,
  createPayoutInstruction,
  generateKeyPair,
  sendRequest,
} from "@countersign/devtools/sandbox";
import { sampleEventData } from "@countersign/devtools/internal";

/** TEST CREDENTIALS. */
export const credentials = { username: "service", password: "scene-password", secret: "scene-secret" };
export const newKey = generateKeyPair({ keyid: "service-2026" });
export const oldKey = generateKeyPair({ keyid: "service-2025" });
export const payoutPath = "/api/v1/transaction";
export const webhookPath = "/hooks/4f2a91";
export const nowSeconds = () => Math.floor(Date.now() / 1000);

/** Every so many payouts goes otherwise than it should. */
const payoutKinds = [
  [113, (send) => untilDecided({ reference: "unclear" }, send)],
  [47, (send) => untilDecided({ reference: "very slow" }, send)],
  [53, (send) => send({ reference: "refused" })],
  [41, (send) => twice({ reference: "slow" }, send)],
  [37, (send) => twice({ nonce: crypto.randomUUID() }, send)],
  [31, (send) => send({ businessId: "stranger" })],
  [29, (send) => send({ tamper: "signature" })],
  [23, (send) => send({ tamper: "body" })],
  [19, (send) => send({ created: nowSeconds() + 120 })],
  [17, (send) => send({ created: nowSeconds() - 120 })],
  [13, (send) => send({ idempotencyKey: "paid.once.already" })],
  [7, (send) => send({ key: oldKey })],
  // Clocks that are a little ahead or behind pass.
  [5, (send) => send({ created: nowSeconds() + 20 })],
  [3, (send) => send({ created: nowSeconds() - 8 })],
];

const newIdempotencyKey = () => `payout-${crypto.randomUUID()}.funding-1.business-1`;

function twice(options, send) {
  const same = { idempotencyKey: newIdempotencyKey(), ...options };
  return Promise.all([send(same), send(same)]);
}

/** Sends it beside the first attempt again, as the service does, but sooner. */
async function untilDecided(options, send) {
  const same = { idempotencyKey: newIdempotencyKey(), ...options };
  const first = send(same).then(() => true);
  while (!(await Promise.race([first, sleep(400, false)]))) await send(same);
}

const handledAlready = { event_id: "first", type: "buyer.status_changed", epochNanoseconds: 1n };

const webhookKinds = [
  [43, (send) => send({ event_id: `bad-${crypto.randomUUID()}` })],
  [31, (send) => send({ event_id: `slow-${crypto.randomUUID()}` })],
  [23, (send) => send({ type: "thing.happened" })],
  [17, (send) => send({ tamper: "signature" })],
  [13, (send) => send({ tamper: "password" })],
  [7, (send) => send(handledAlready)],
];

/** Requests whose number swells and ebbs, each kind in its turn, and none waited for. */
export function startService(origin) {
  const payoutUrl = `${origin}${payoutPath}`;
  const webhookUrl = `${origin}${webhookPath}`;
  const sendPayout = ({ key = newKey, idempotencyKey, businessId, reference, ...signing }) => {
    const body = createPayoutInstruction({ idempotencyKey, businessId, reference });
    const signed = { url: payoutUrl, body, keyid: key.keyid, privateKey: key.privateKeyPem, ...signing };
    return sendRequest(buildPayoutRequest(signed));
  };
  const types = [...sampleEventData.keys()];
  let sent = 0;
  const sendEvent = async ({ type = types[(sent += 1) % types.length], tamper, ...event }) => {
    const events = [{ ...event, type, data: sampleEventData.get(type) ?? {} }];
    const body = createEnvelope({ events, now: BigInt(Date.now()) * 1_000_000n });
    const request = buildWebhookRequest({ ...credentials, url: webhookUrl, body, tamper, allowHttp: true });
    // As the service does, but sooner.
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const { status } = await sendRequest(request);
      if (status < 300 || tamper !== undefined) return;
      await sleep(300);
    }
  };
  const loops = [
    loop({ perSecond: 24, kinds: payoutKinds, send: sendPayout }),
    loop({ perSecond: 12, kinds: webhookKinds, send: sendEvent }),
  ];
  return { end: () => Promise.all(loops.map(({ end }) => end())) };
}

function loop({ perSecond, kinds, send }) {
  const startedAt = performance.now();
  const underWay = new Set();
  let count = 0;
  let timer;
  const next = () => {
    count += 1;
    const [, sendKind = () => send({})] = kinds.find(([every]) => count % every === 0) ?? [];
    const exchange = sendKind(send);
    underWay.add(exchange);
    void exchange.finally(() => underWay.delete(exchange));
    const swell = 1 + 0.4 * Math.sin((2 * Math.PI * (performance.now() - startedAt)) / 60_000);
    timer = setTimeout(next, (1000 / perSecond / swell) * (0.5 + Math.random()));
  };
  next();
  return {
    async end() {
      clearTimeout(timer);
      await Promise.all(underWay);
    },
  };
}
