import type { IdempotencyRecord, ReleasedKey } from "@countersign/idempotency";
import { leaseExpired } from "@countersign/idempotency/store";
import type { Platform, Store } from "../platform.ts";
import type { WrongStore } from "./wrong-store.ts";

type Seen = { readonly fence: number; readonly decision?: ReleasedKey["decision"] | undefined };
type Change = (decision: ReleasedKey["decision"], seen: Seen) => ReleasedKey["decision"] | undefined;

/** Every decision is changed before it is shown; undefined: it is not shown. */
function shown(change: Change): (platform: Platform) => Partial<Store> {
  const changed = <Kept extends Seen>(kept: Kept): Kept =>
    kept.decision === undefined ? kept : { ...kept, decision: change(kept.decision, kept) };
  return ({ store, memory }) => ({
    async read(key) {
      const record = await store.read(key);
      return record && changed(record);
    },
    async readReleased(key) {
      const released = await store.readReleased(key);
      const decision = released && change(released.decision, released);
      return decision && { ...released, decision };
    },
    list(query) {
      const { entries, cursor } = memory.list(query);
      return { cursor, entries: entries.map(({ key, record }) => ({ key, record: changed(record) })) };
    },
  });
}

/** Wrong about what is kept of an operator's decision. */
export const wrongKeeping: readonly WrongStore[] = [
  {
    does: "forgets the hold's own reason at the decision",
    fails: "hostile tokens, fingerprints,",
    wrong: shown((decision) => ({ ...decision, reason: "" })),
  },
  {
    does: "keeps an empty note where nobody gave one",
    wrong: shown((decision) => ({ ...decision, note: decision.note ?? "" })),
  },
  {
    does: "keeps no reason of a run whose lease had expired",
    wrong: shown((decision) => ({
      ...decision,
      reason: decision.reason === leaseExpired ? "" : decision.reason,
    })),
  },
  {
    does: "trims notes",
    fails: "hostile tokens, fingerprints,",
    wrong: ({ store }) => ({
      resolve: (key, outcome, { note, ...decision }) =>
        store.resolve(key, outcome, { ...decision, note: note === undefined ? note : note.trim() || "-" }),
    }),
  },
  {
    does: "forgets a decision at the next claim",
    wrong: shown((decision, { fence }) =>
      decision.fence < fence && decision.reopened === undefined ? undefined : decision,
    ),
  },
  {
    does: "lists records without their decisions",
    wrong: ({ memory }) => ({
      list(query) {
        const { entries, cursor } = memory.list(query);
        const bare = ({ decision: _decision, ...record }: IdempotencyRecord): IdempotencyRecord => record;
        return { cursor, entries: entries.map(({ key, record }) => ({ key, record: bare(record) })) };
      },
    }),
  },
  {
    does: "removes what was released when it prunes, with its decision",
    wrong: ({ store }) => {
      let hasPruned = false;
      return {
        prune() {
          hasPruned = true;
          return store.prune();
        },
        readReleased: (key) => (hasPruned ? undefined : store.readReleased(key)),
      };
    },
  },
  {
    does: "tells a decision again when its key is claimed after the retention",
    wrong: ({ store }) => {
      const kept = new Map<string, ReleasedKey["decision"]>();
      return {
        async read(key) {
          const record = await store.read(key);
          if (record?.decision !== undefined) kept.set(key, record.decision);
          const decision = kept.get(key);
          return record && decision ? { ...record, decision } : record;
        },
        async readReleased(key) {
          const released = await store.readReleased(key);
          if (released !== undefined) kept.set(key, released.decision);
          return released;
        },
      };
    },
  },
  {
    does: "gives a reopening the time of its decision",
    wrong: shown(({ reopened, ...decision }) =>
      reopened === undefined ? decision : { ...decision, reopened: { ...reopened, at: decision.at } },
    ),
  },
];
