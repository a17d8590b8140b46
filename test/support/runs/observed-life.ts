import { randomUUID } from "node:crypto";
import { channel } from "node:diagnostics_channel";
import { channels, GuardError, traces, type PublishedEvents } from "@countersign/core";
import { publishNotice, Steps, traced, verdicts } from "@countersign/core/internal";
import {
  idempotencyKeys,
  memoryIdempotencyStore,
  type IdempotencyStore,
  type MemoryIdempotencyStore,
} from "@countersign/idempotency";
import { WaitingRoom } from "@countersign/idempotency/internal";
import { createWebhookHandler, parseWebhookEnvelope } from "countersign/webhooks";

/** The engine that {@link liveThrough} names: what else is under way in this process is told of another one. */
export const engineOfLife = "life";

/** The text of a stranger, who would forge a line and flood a log. */
export const hostileText = `stranger\u001b[31m\n${"x".repeat(2_000)}`;

const seller = { seller_id: "s1", old_status: "PENDING", new_status: "ACTIVE" };

/** One of each thing that sinks hear of. Resolves when all of it has been told. */
export async function liveThrough(): Promise<{ readonly store: MemoryIdempotencyStore }> {
  const store = Object.assign(memoryIdempotencyStore({ retentionMs: 72 * 3_600_000 }), {
    engine: engineOfLife,
  });
  judge();
  publishNotice({ guard: "exampleGuard", code: "held", message: 'key "k1" waits', error: new Error("why") });
  const use: PublishedEvents["keyUse"] = {
    keyid: "key-1",
    subject: "tenant",
    created: 1,
    notAfter: 2_000_000_000,
  };
  channel(channels.keyUse.name).publish(use);
  await own(store);
  await receive(store);
  const task: PublishedEvents["task"] = { queue: "outcomes", taskId: "k1", attempt: 1 };
  await traced(traces.task, task, { work: () => Promise.resolve("done"), outcomeOf: String });
  await new Promise((resolve) => setImmediate(resolve));
  return { store };
}

/** A pass with a signature, a refusal and a failure. */
export function judge(keyid = "key-1"): void {
  const req = {};
  verdicts.note(req, {
    keyid,
    label: "sig1",
    ageSeconds: 2.5,
    components: ["@method"],
    idempotencyKey: "k1",
  });
  const steps = new Steps(req);
  steps.begin("httpSignatureVerify");
  steps.begin("ipAllowlist");
  const message = "the signature does not verify";
  steps.refused(new GuardError({ status: 401, code: "signature-mismatch", message }));
  const failing = new Steps({});
  failing.begin("exampleGuard");
  failing.refused(new TypeError("a bug"));
}

async function own(store: IdempotencyStore): Promise<void> {
  const keys = idempotencyKeys({ factory: "exampleGuard", store });
  const attempt = (key: string) => ({ key, fingerprint: "f", token: randomUUID() });
  const done = await keys.acquire(attempt("k1"));
  if (done.status === "acquired") await done.complete();
  await keys.acquire(attempt("k1"));
  const held = await keys.acquire(attempt("k2"));
  if (held.status === "acquired") await held.hold("the bank did not answer");
  const room = new WaitingRoom("exampleGuard", 1);
  const looks = { waitMs: 5_000, pollMs: 5, read: async () => store.read("k2") };
  await room.untilDecided("k2", looks, (work) => work(new AbortController().signal));
  const broken = { ...noStore, engine: engineOfLife };
  const failing = idempotencyKeys({ factory: "exampleGuard", store: broken });
  try {
    await failing.acquire(attempt("k3"));
  } catch {
    // As it should be.
  }
}

const lost = (): "lost" => "lost";
const noStore: IdempotencyStore = {
  claim: () => {
    throw new Error("no connection");
  },
  read: () => undefined,
  heartbeat: lost,
  complete: lost,
  release: lost,
  hold: lost,
  resolve: () => "not-held",
  reopen: () => "not-decided",
  readReleased: () => undefined,
  prune: () => 0,
  close: () => undefined,
};

async function receive(store: IdempotencyStore): Promise<void> {
  const onError = (): void => undefined;
  const onDeadLetter = (): void => undefined;
  const handler = createWebhookHandler({ store, fallback: "ignore", maxAttempts: 1, onDeadLetter, onError });
  handler.on("seller.status_changed", ({ event_id }) => {
    if (event_id === "bad") throw new Error("no such seller");
  });
  const timestamp = "2024-01-02T03:04:05Z";
  const events = [
    { event_id: "good", timestamp, type: "seller.status_changed", data: seller },
    { event_id: "bad", timestamp, type: "seller.status_changed", data: seller },
    { event_id: "odd", timestamp, type: `thing.${"y".repeat(80)}`, data: {} },
  ];
  const body = { webhook_id: "wh_1", timestamp, events };
  await handler.handle(parseWebhookEnvelope(Buffer.from(JSON.stringify(body))));
}
