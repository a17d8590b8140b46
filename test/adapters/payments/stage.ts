import { createHash, randomUUID } from "node:crypto";
import type { NonceClaim } from "@countersign/core";
import type { TransactionStores } from "@countersign/idempotency";
import { payoutStoreKey } from "countersign/payout";
import { testClock } from "../../support/runs/after-test.ts";
import { withOverrides } from "../../support/runs/sections.ts";
import type { WireAnswer, WireRequest } from "../../support/servers/http-client.ts";
import { samplePath } from "../../support/signers/independent-signer.ts";
import { servicePublicPem } from "../../support/signers/test-keys.ts";
import { idempotencyKey, payoutText, signPayout } from "../payout-scene.ts";
import type { Adapter, AdapterName, PaymentScene } from "../scene.ts";
import { after, type Engine, type EngineName, type ProcessOptions, type Tables, type Tx } from "./engines.ts";

type Options = PaymentScene["options"];
type Context = Parameters<Options["pay"]>[1];

/** One row: what is there before, what `pay` does, what is answered, and what is there afterwards. */
export interface PaymentRow {
  readonly title: string;
  /** Says nothing about adapters: at Express 5 alone. */
  readonly engineAlone?: true;
  /** Default: every engine. */
  readonly on?: readonly EngineName[];
  /** Default: every adapter. */
  readonly not?: readonly AdapterName[];
  readonly process?: (stage: Stage) => ProcessOptions;
  readonly appStatus?: number;
  readonly options?: (stage: Stage) => Partial<Omit<Options, "stores" | "pay" | "idempotency">> & {
    readonly idempotency?: Options["idempotency"];
  };
  readonly arrange?: (stage: Stage) => unknown;
  /** Default: writes the payment. */
  readonly pay?: (work: Work) => unknown;
  /** One after the other. Default: one, newly signed. */
  readonly sends?: readonly Send[];
  /** Goes on beside the last request; awaited before it is. */
  readonly meanwhile?: (stage: Stage) => Promise<unknown>;
  /** A status, the code of a refusal behind it. */
  readonly answers: readonly string[];
  readonly body?: string;
  readonly key: "done" | "free" | "held" | "running";
  /** Of the first request. Default: it stays. */
  readonly nonce?: "fresh" | "seen";
  /** How often the payment is there, by `pay`. */
  readonly paid: number;
  /** How often `pay` ran, where it is not as often as it was paid. */
  readonly ran?: number;
  readonly afterwards?: (stage: Stage) => Promise<unknown>;
}

/** `new`: the payout, newly signed. `again`: the bytes of the first request. */
export type Send = "new" | "again" | "changed" | ((stage: Stage) => WireRequest | Promise<WireRequest>);

/** What `pay` has in a row. */
export interface Work {
  readonly stage: Stage;
  readonly tx: Tx;
  readonly context: Context;
  /** From 1. */
  readonly call: number;
  write(this: void): unknown;
  sql(this: void, text: string): unknown;
  /** Sends what `tx` does not take. */
  past(this: void, text: string): unknown;
  /** Writes the payment, then does this. */
  writeThen(this: void, next: () => unknown): unknown;
}

/** A test's app with its tables. */
export class Stage {
  readonly tables: Tables;
  readonly engine: Engine;
  readonly stores: TransactionStores<Tx>;
  readonly clock = testClock();
  readonly signingClock: { skewMs: number } = { skewMs: 0 };
  readonly key = payoutStoreKey(idempotencyKey);
  readonly fingerprint = createHash("sha256").update(payoutText).digest("base64url");
  readonly nonce: string = randomUUID();
  readonly first = signPayout({ nonce: this.nonce });
  calls = 0;
  drain: (() => Promise<unknown>) | undefined;
  settle: (() => Promise<unknown>) | undefined;
  /** Sends another request beside those of the row; set once the adapter is open. */
  sendBeside: (() => Promise<unknown>) | undefined;
  /** What the row waits for, as it likes. */
  readonly gate: Gate = deferred();
  readonly asked: Gate = deferred();
  questions = 0;
  isPromoted = false;
  beside: Promise<unknown> | undefined;
  /** Resolves once `pay` has begun. */
  readonly begun: Promise<void>;
  readonly #begin: () => void;
  #sent = 0;

  constructor(engine: Engine, tables: Tables, row: PaymentRow) {
    this.engine = engine;
    this.tables = tables;
    this.stores = tables.process({ now: this.clock.now, ...row.process?.(this) });
    const { promise, resolve } = deferred();
    this.begun = promise;
    this.#begin = resolve;
  }

  claim(nonce = this.nonce): NonceClaim {
    return { scope: "test-key", nonce, token: randomUUID(), retainMs: 60_000 };
  }

  next(send: Send): WireRequest | Promise<WireRequest> {
    this.#sent += 1;
    if (send === "again" || (send === "new" && this.#sent === 1)) return this.first;
    if (send === "new") return signPayout();
    if (send === "changed") return signPayout({ body: payoutText.replace("10.1", "10.2") });
    return send(this);
  }

  sceneOf(row: PaymentRow): PaymentScene {
    const { pay: payOf = (work: Work) => work.write() } = row;
    const pay = (_payout: unknown, context: Context): unknown => {
      this.calls += 1;
      this.#begin();
      const { tx } = context;
      const sql = (text: string): unknown => this.tables.sql(tx, text);
      const past = (text: string): unknown => this.tables.past(tx, text, this.stores);
      const write = (): unknown => sql("INSERT INTO payments VALUES ('paid')");
      const writeThen = (next: () => unknown): unknown => after(write(), next);
      return payOf({ stage: this, tx, context, call: this.calls, sql, past, write, writeThen });
    };
    const options: Options = {
      addresses: { allow: ["127.0.0.1"] },
      signature: {
        keys: { "test-key": servicePublicPem },
        clock: () => Date.now() + this.signingClock.skewMs,
        limit: "4kb",
      },
      referenceField: "reference",
      stores: this.stores,
      pay,
      idempotency: { waitMs: 5_000, storeTimeoutMs: 20_000 },
    };
    return {
      kind: "payment",
      path: samplePath,
      options: withOverrides<Options>(options, row.options?.(this) ?? {}),
      trace: { codes: [], ran: 0 },
      appStatus: row.appStatus,
      mounted: (endpoint) => (this.drain = () => endpoint.drain({ timeoutMs: 1 })),
    };
  }

  /** Opens a transaction in another process, with this key or nonce, until `settle()`, which commits or rolls back. */
  async another(claimed: { readonly key?: string; readonly nonce?: string }, ends: "commit" | "rollback") {
    const { transactions } = this.tables.process({ now: this.clock.now });
    const key = { key: claimed.key ?? "another", token: randomUUID(), fingerprint: this.fingerprint };
    const nonce = this.claim(claimed.nonce ?? randomUUID());
    const [open, told] = [deferred(), deferred()];
    const ended = transactions.run(async (tx) => {
      const bounds = { leaseMs: 60_000, waitMs: 1_000, idleTimeoutMs: 60_000 };
      const claim = { nonce, keys: [key], recovery: "hold", ...bounds } as const;
      await transactions.begin(tx, claim);
      await this.tables.sql(tx, "INSERT INTO payments VALUES ('by another')");
      open.resolve();
      await told.promise;
      if (ends === "rollback") throw new Error("rolled back");
      await transactions.keep(tx, [key], false);
    });
    const settled = ended.catch(() => undefined);
    await open.promise;
    this.settle = () => {
      told.resolve();
      return settled;
    };
  }
}

export interface Seen {
  readonly answers: readonly string[];
  readonly key: string;
  readonly nonce: string;
  readonly paid: number;
  readonly ran: number;
}

/** Plays the row on the engine at the adapter: what was seen, and what the row demands. */
export async function play(
  adapter: Adapter,
  engine: Engine,
  row: PaymentRow,
): Promise<{ readonly seen: Seen; readonly demanded: Seen; readonly last: WireAnswer | undefined }> {
  const stage = new Stage(engine, await engine.open(), row);
  const scene = stage.sceneOf(row);
  const opened = await adapter.open(scene);
  stage.sendBeside = () => opened.send(signPayout());
  const answers: string[] = [];
  let last: WireAnswer | undefined;
  try {
    await row.arrange?.(stage);
    const sends = row.sends ?? ["new"];
    for (const [index, send] of sends.entries()) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const sending = opened.send(await stage.next(send));
      // oxlint-disable-next-line no-await-in-loop -- as above
      if (index === sends.length - 1) await row.meanwhile?.(stage);
      // oxlint-disable-next-line no-await-in-loop -- as above
      last = await sending;
      const codes = scene.trace.codes.splice(0).filter((code) => code !== "no-code");
      answers.push([last.status, ...codes].join(" "));
      const misfit = misfitOf(last);
      if (misfit !== undefined) answers.push(misfit);
    }
    await stage.settle?.();
    await row.afterwards?.(stage);
    // What a row has done to its own process is no one else's.
    const { idempotency, nonces } =
      row.process === undefined ? stage.stores : stage.tables.process({ now: stage.clock.now });
    const key = (await idempotency.read(stage.key))?.state ?? "free";
    const nonce = await nonces.claim(stage.claim());
    const paid = (await stage.tables.paid()).filter((id) => id === "paid").length;
    return {
      seen: { answers, key, nonce, paid, ran: stage.calls },
      demanded: {
        answers: row.answers,
        key: row.key,
        nonce: row.nonce ?? "seen",
        paid: row.paid,
        ran: row.ran ?? row.paid,
      },
      last,
    };
  } finally {
    await stage.settle?.();
    await opened.close();
  }
}

/** What every answer of its status has. */
function misfitOf({ status, headers, body }: WireAnswer): string | undefined {
  if (status === 503 && !/^\d+$/.test(headers["retry-after"] ?? "")) return "without Retry-After";
  if (status === 401 && headers["want-content-digest"] === undefined) return "without Want-Content-Digest";
  const isProblem = headers["content-type"] === "application/problem+json";
  if (status >= 400 && status !== 500 && !isProblem) return "without problem details";
  if (status === 200 && body !== "") return "a 200 with a body";
  return undefined;
}

interface Gate {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

export function deferred(): Gate {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
