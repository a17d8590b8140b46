import { leaseExpired, operatorEntry } from "@countersign/idempotency/store";
import type { IdempotencyRecord, KeptDecision } from "@countersign/idempotency";
import type { Ask } from "../ask-terminal.ts";
import { exitCodes, type CommandIo } from "../command-io.ts";
import { wrap } from "../table.ts";
import type { DescribeKey } from "./describe-key.ts";
import { decisionMarks } from "./decision-report.ts";
import { readAny } from "./find-key.ts";
import { shownKey } from "./key-text.ts";
import { keyFacts, shortened } from "./keys-report.ts";
import { isUndecided } from "./known-record.ts";
import { readNote, type Entry } from "./operator-entry.ts";
import type { OperatorStore } from "./store.ts";
import { StoreFailure } from "./store-failure.ts";

/** What an operator decides about a key. */
export type Outcome = "done" | "released";

/** A decision about a key. */
export interface Resolution {
  readonly key: string;
  readonly outcome: Outcome;
  /** The attempt that the operator has looked at; undefined: the one that is shown here. */
  readonly fence: number | undefined;
  /** Undefined where the store alone knows it. */
  readonly retentionDays: number | undefined;
  /** The store as it is named in messages. */
  readonly store: string;
  readonly io: CommandIo;
  /** Where the platform tells more about its keys. */
  readonly describe: DescribeKey | undefined;
  /** Shows what is about to happen. */
  readonly show: (text: string) => void;
  /** Asks before anything is changed; undefined when that was given on the command line. */
  readonly ask: Ask | undefined;
  /** Who decides, and why. Without a note, `ask` asks for one. */
  readonly entry: Entry;
}

/** The record as it was, and the decision as the store has it. */
export interface Resolved {
  readonly was: IdempotencyRecord;
  readonly decision: KeptDecision;
}

type Store = Pick<OperatorStore["idempotency"], "read" | "readReleased" | "resolve">;

/**
 * Resolves a key that waits for an operator. The decision holds for the attempt that was shown, and for no later one, however long the
 * question stood. Throws a StoreFailure, and changes nothing, when there is nothing to decide, when the answer is no, or when the key
 * has gone to another attempt.
 */
export async function resolveKey(store: Store, resolution: Resolution): Promise<Resolved> {
  const { key, outcome, show, ask, io } = resolution;
  const record = await store.read(key);
  if (record === undefined || !isUndecided(record)) throw nothingToDecide(resolution, record);
  const { fence } = record;
  if (resolution.fence !== undefined && resolution.fence !== fence) throw changed(key, fence);
  const described = await resolution.describe?.({ key, record });
  const known = { key, record, described, store: resolution.store };
  const facts = keyFacts(known, io, shortened(record.fingerprint)).map(
    ([name, text]) => `${name}  ${text}\n`,
  );
  show(`${facts.join("")}\n${meaning(resolution, record)}`);
  const entry = ask === undefined ? resolution.entry : await confirmed(ask, resolution);
  if ((await store.resolve(key, outcome, { fence, ...entry })) === "ok") {
    return { was: record, decision: await keptDecision(store, resolution, { record, entry }) };
  }
  const now = await store.read(key);
  throw now === undefined || now.fence === fence ? nothingToDecide(resolution, now) : changed(key, now.fence);
}

async function confirmed(ask: Ask, { outcome, entry }: Resolution): Promise<Entry> {
  const note = entry.note ?? (await ask("Note for the record, such as a ticket (may be empty): "));
  const answer = note === undefined ? undefined : await ask(`Type ${outcome} to confirm: `);
  if (answer?.trim() !== outcome)
    throw new StoreFailure("not confirmed; nothing was changed", exitCodes.otherwise);
  return { ...entry, ...readNote(note) };
}

/** As the store has it; of a store that keeps none, and of a key that was decided about anew meanwhile, as it was sent. */
async function keptDecision(
  store: Store,
  { key, outcome, io }: Resolution,
  { record, entry }: { readonly record: IdempotencyRecord; readonly entry: Entry },
): Promise<KeptDecision> {
  const decision = (await readAny(store, key))?.decision;
  if (decision?.fence === record.fence) return decision;
  const reason = record.state === "held" ? record.reason : leaseExpired;
  return { ...operatorEntry(entry, io.clock() * 1000), outcome, fence: record.fence, reason };
}

function changed(key: string, fence: number): StoreFailure {
  const now = `${shownKey(key)} has changed since it was shown: it is at fence ${fence} now`;
  return new StoreFailure(`${now}; nothing was resolved, look at it again`, exitCodes.otherwise);
}

function nothingToDecide({ key, store }: Resolution, record: IdempotencyRecord | undefined): StoreFailure {
  return new StoreFailure(`${shownKey(key)}: ${whyNot(key, store, record)}`, exitCodes.otherwise);
}

function whyNot(key: string, store: string, record: IdempotencyRecord | undefined): string {
  if (record === undefined) {
    const hint = key.startsWith('"') ? "; a key that is printed in double quotes is given by --key-json" : "";
    return `unknown in ${store}: never seen there, released, or forgotten after its retention${hint}`;
  }
  if (record.state === "done") {
    const by = decisionMarks(record).map((mark) => ` (${mark})`);
    return `already done${by.join("")}; there is nothing to decide`;
  }
  if (record.state === "held") return "held meanwhile; nothing was resolved, look at it again";
  return `still running: its lease ends in ${record.remainingMs} ms unless its owner renews it; nothing was resolved`;
}

function meaning({ outcome, retentionDays, io }: Resolution, { state }: IdempotencyRecord): string {
  const time =
    retentionDays === undefined ? "As long as the store remembers the key," : `For ${retentionDays} days`;
  const done = [
    `done: the payment was made. ${time} every retry is answered 409, already processed, and pays nothing.`,
    "keys reopen takes this back; what the services are told meanwhile, nobody can take back.",
  ];
  const released = [
    "released: no payment was made. The key is free, and the next retry PAYS; if money has moved, it moves twice. " +
      "keys reopen takes this back until then.",
    ...(state === "run"
      ? ["The process that began it may only be slow: make sure that it is gone, or both may pay."]
      : []),
  ];
  return (outcome === "done" ? done : released)
    .flatMap((line) => (io.columns === undefined ? line : wrap(line, io.columns)))
    .map((line) => `${line}\n`)
    .join("");
}
