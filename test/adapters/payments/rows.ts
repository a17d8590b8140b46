import { answer, refuse } from "@countersign/idempotency-guard";
import { samplePath } from "../../support/signers/independent-signer.ts";
import { idempotencyKey, signBody, signPayout } from "../payout-scene.ts";
import { fail, handlerRows, replayed } from "./handler-rows.ts";
import type { PaymentRow, Stage } from "./stage.ts";

const lease = { token: "lease", leaseMs: 1_000, recovery: "rerun" } as const;
const longMs = 400 * 86_400_000;

async function inLeaseMode({ stores, key, fingerprint }: Stage): Promise<void> {
  await stores.idempotency.claim(key, { ...lease, fingerprint });
}

async function expired(stage: Stage): Promise<void> {
  await inLeaseMode(stage);
  stage.clock.advance(lease.leaseMs);
}

async function held(stage: Stage): Promise<void> {
  await inLeaseMode(stage);
  await stage.stores.idempotency.hold(stage.key, lease.token, "why");
}

const free = { key: "free", paid: 0 } as const;

/** What every adapter does with each end of a payment. */
export const coreRows: readonly PaymentRow[] = [
  { title: "a key that nobody had", answers: ["200"], key: "done", paid: 1 },
  {
    title: "the same signed request again",
    sends: ["new", "again"],
    answers: ["200", replayed],
    key: "done",
    paid: 1,
  },
  {
    title: "a done key, newly signed, whose nonce stays",
    sends: [() => signPayout(), "again", "again"],
    answers: ["200", "409 already-processed", replayed],
    key: "done",
    paid: 1,
  },
  {
    title: "a done key with another payload",
    sends: ["new", "changed"],
    answers: ["200", "409 idempotency-key-reused"],
    key: "done",
    paid: 1,
  },
  {
    title: "a live run of lease mode",
    arrange: inLeaseMode,
    sends: ["new", "again"],
    answers: ["503 in-flight", replayed],
    key: "running",
    paid: 0,
  },
  {
    title: "a held key",
    arrange: held,
    sends: ["new", "again"],
    answers: ["503 held", replayed],
    key: "held",
    paid: 0,
  },
  {
    title: "a handler that refuses: its key is free, its nonce stays",
    pay: ({ call, writeThen }) =>
      writeThen(() => {
        if (call === 1) throw refuse("account-frozen", { detail: "frozen since May" });
      }),
    sends: ["new", "again", "new"],
    answers: ["400 account-frozen", replayed, "200"],
    key: "done",
    paid: 1,
    ran: 2,
  },
  {
    title: "a handler that fails: its key is free, its nonce stays",
    pay: ({ call, writeThen }) => writeThen(() => call > 1 || fail()),
    sends: ["new", "again", "new"],
    answers: ["500", replayed, "200"],
    key: "done",
    paid: 1,
    ran: 2,
  },
  {
    title: "an answer of the handler's own",
    pay: ({ writeThen }) => writeThen(() => answer(202, { id: 7 })),
    answers: ["202"],
    body: '{"id":7}',
    key: "done",
    paid: 1,
  },
  {
    title: "a handler's plain object, which is ignored",
    pay: ({ writeThen }) => writeThen(() => ({ status: 500, body: "no" })),
    answers: ["200"],
    body: "",
    key: "done",
    paid: 1,
  },
  {
    title: "an unknown business: the nonce stays",
    options: () => ({ findBusiness: () => false }),
    sends: ["new", "again"],
    answers: ["400 business-unknown", replayed],
    ...free,
  },
  {
    title: "another method: the nonce stays",
    sends: [({ nonce }) => signPayout({ nonce, method: "PUT" }), ({ nonce }) => signPayout({ nonce })],
    answers: ["405 method-not-allowed", replayed],
    ...free,
  },
  {
    title: "a body that is no payout: the nonce stays",
    sends: [({ nonce }) => signPayout({ nonce, body: '{"a":1}' }), ({ nonce }) => signPayout({ nonce })],
    answers: ["400 payout-invalid", replayed],
    ...free,
  },
  {
    title: "an outcome that is expected, with the payment alone",
    options: ({ tables }) => ({
      outcomes: {
        expectWithinMs: 60_000,
        expect: (tx, payout) => tables.sql(tx, `INSERT INTO payments VALUES ('${payout.idempotencyKey}')`),
      },
    }),
    pay: ({ call, writeThen }) => writeThen(() => call > 1 || fail()),
    sends: ["new", "new"],
    answers: ["500", "200"],
    key: "done",
    paid: 1,
    ran: 2,
    async afterwards({ tables }) {
      const expected = (await tables.paid()).filter((id) => id === idempotencyKey);
      if (expected.length !== 1) throw new Error(`the outcome is expected ${expected.length} times`);
    },
  },
  {
    title: "a process that drains",
    arrange: ({ drain }) => drain?.(),
    answers: ["503 draining"],
    nonce: "fresh",
    ...free,
  },
];

const lookUps: readonly PaymentRow[] = [
  {
    title: "a done key whose business has gone",
    options: (stage) => ({ findBusiness: () => stage.calls === 0 }),
    sends: ["new", "new"],
    answers: ["200", "409 already-processed"],
    key: "done",
    paid: 1,
  },
  {
    title: "a look-up of the business that fails",
    options: (stage) => {
      let asked = 0;
      return { findBusiness: () => asked++ > 0 || (stage.calls === 0 && fail()) };
    },
    sends: ["new", "again", "new"],
    answers: ["503 business-lookup-unavailable", replayed, "200"],
    key: "done",
    paid: 1,
  },
  {
    title: "a path of another case",
    not: ["node:http", "fastify", "fetch", "fetch behind node", "hono"],
    sends: [
      ({ nonce }) => signPayout({ nonce, path: `${samplePath}/` }),
      ({ nonce }) => signPayout({ nonce }),
    ],
    answers: ["404 path-not-mounted", replayed],
    ...free,
  },
  {
    title: "a body that is no JSON: the nonce stays",
    sends: [() => signBody("{"), "again", "again"],
    answers: ["400 json-invalid", "200", replayed],
    key: "done",
    paid: 1,
  },
  {
    title: "a signature whose window passes before its transaction",
    options: (stage) => ({ findBusiness: () => (stage.signingClock.skewMs = 600_000) > 0 }),
    answers: ["401 signature-expired"],
    ...free,
  },
];

const leases: readonly PaymentRow[] = [
  {
    title: "an expired run under hold",
    arrange: expired,
    sends: ["new", "again"],
    answers: ["503 held", replayed],
    key: "held",
    paid: 0,
  },
  {
    title: "an expired run under rerun: the old owner has lost",
    arrange: expired,
    options: () => ({ idempotency: { recovery: "rerun" } }),
    answers: ["200"],
    key: "done",
    paid: 1,
    async afterwards({ stores: { idempotency }, key }) {
      const late = await idempotency.complete(key, lease.token);
      if (late !== "lost") throw new Error(`the old owner's complete() found ${late}`);
    },
  },
  {
    title: "a done key whose retention is over",
    sends: [
      () => signPayout(),
      ({ clock, first }) => {
        clock.advance(longMs);
        return first;
      },
    ],
    answers: ["200", "200"],
    key: "done",
    paid: 2,
  },
];

export const paymentRows: readonly PaymentRow[] = [...coreRows, ...lookUps, ...leases, ...handlerRows];
