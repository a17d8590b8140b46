// The lending service of the soak: sends webhooks until they are acknowledged, and receives the outcomes of payouts.
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { createEnvelope, sendWebhook } from "@countersign/devtools/sandbox";
import { credentials, settlePath, webhookPath } from "./wire.mjs";

const patienceMs = 4_000;
const nobodyPauseMs = 20;

/**
 * Sends `events` events of `entities` entities, up to ten a webhook and those of an entity in order, `aSecond` webhooks a second at most.
 * Resolves to how long the acknowledgements took, in milliseconds, from the attempt that got it.
 */
export async function sendEvents({ platform, random, events, entities, aSecond, lanes = 16 }) {
  const tookMs = [];
  const startedAtMs = performance.now();
  let webhooks = 0;
  const sendOf = async (lane) => {
    // The entities of a lane are its own: their order is that of its webhooks.
    const own = Array.from({ length: entities }, (_, index) => index).filter(
      (index) => index % lanes === lane,
    );
    const share = Math.floor(events / lanes) + (lane < events % lanes ? 1 : 0);
    const numbers = new Map(own.map((entity) => [entity, 0]));
    for (let sent = 0; sent < share;) {
      const size = Math.min(1 + random.below(10), share - sent);
      const batch = Array.from({ length: size }, () => {
        const entity = own[random.below(own.length)];
        const number = numbers.get(entity) + 1;
        numbers.set(entity, number);
        return eventOf(`buyer-${entity}`, number);
      });
      webhooks += 1;
      const dueAtMs = startedAtMs + (webhooks * 1_000) / aSecond;
      // oxlint-disable-next-line no-await-in-loop -- one webhook behind the other
      await delay(Math.max(0, dueAtMs - performance.now()));
      // oxlint-disable-next-line no-await-in-loop -- as above
      tookMs.push(await deliver(platform, random, batch));
      sent += size;
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, lane) => sendOf(lane)));
  return { tookMs, webhooks, seconds: (performance.now() - startedAtMs) / 1_000 };
}

function eventOf(entity, number) {
  const data = { buyer_id: entity, old_status: String(number), new_status: "ACTIVE" };
  return { event_id: `${entity}:${number}`, type: "buyer.status_changed", data };
}

async function deliver(platform, random, events) {
  const body = createEnvelope({ events, now: BigInt(Date.now()) * 1_000_000n });
  for (;;) {
    const base = platform.anyUrl(random);
    const startedAtMs = performance.now();
    const url = `${base}${webhookPath}`;
    const { status } =
      base === undefined
        ? { status: undefined }
        : // oxlint-disable-next-line no-await-in-loop -- one attempt behind the other
          await sendWebhook({ url, ...credentials, allowHttp: true, body, timeoutMs: patienceMs });
    if (status >= 200 && status < 300) return performance.now() - startedAtMs;
    // oxlint-disable-next-line no-await-in-loop -- as above
    await delay(nobodyPauseMs);
  }
}

/** Has `count` payouts settled, and as many rolled back on purpose. Resolves to the keys of the latter. */
export async function settlePayouts({ platform, random, count, lanes = 4 }) {
  const rolledBack = [];
  let next = 0;
  const settleSome = async () => {
    while (next < count) {
      next += 1;
      const number = next;
      // oxlint-disable-next-line no-await-in-loop -- one behind the other
      await settle(platform, random, `payout-${number}`);
      if (number % 10 !== 0) continue;
      const key = `undone-${number}`;
      rolledBack.push(key);
      // oxlint-disable-next-line no-await-in-loop -- as above
      await post(platform, random, `${settlePath}/${key}?rollback=1`);
    }
  };
  await Promise.all(Array.from({ length: lanes }, settleSome));
  return rolledBack;
}

/** Until it is done, or was: the second time its key is there. */
async function settle(platform, random, key) {
  for (let attempt = 1; ; attempt += 1) {
    // oxlint-disable-next-line no-await-in-loop -- one attempt behind the other
    const status = await post(platform, random, `${settlePath}/${key}`);
    if (status === 200 || (status === 500 && attempt > 1)) return;
    // oxlint-disable-next-line no-await-in-loop -- as above
    await delay(nobodyPauseMs);
  }
}

async function post(platform, random, path) {
  const base = platform.anyUrl(random);
  if (base === undefined) return undefined;
  try {
    const response = await fetch(base + path, { method: "POST", signal: AbortSignal.timeout(patienceMs) });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined;
  }
}

/** Answers 409 to what it has; at times it takes an outcome and says nothing, or 503. */
export async function startReceiver(random) {
  const received = new Map();
  const server = createServer((req, res) => {
    const chunks = [];
    req.on("data", (chunk) => chunks.push(chunk));
    req.on("end", () => {
      const { idempotency_key: key } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
      const fault = random.below(20);
      if (fault === 0) {
        res.writeHead(503).end();
        return;
      }
      const isKnown = received.has(key);
      received.set(key, (received.get(key) ?? 0) + 1);
      if (fault === 1) res.destroy();
      else res.writeHead(isKnown ? 409 : 200).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/confirmations`,
    received,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
