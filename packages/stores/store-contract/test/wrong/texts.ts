import type { Platform, Store } from "../platform.ts";
import { type WrongStore, ownerOf } from "./wrong-store.ts";

type Change = (text: string) => string;

const cutAt =
  (length: number): Change =>
  (text) =>
    text.slice(0, length);
const throughUtf8: Change = (text) => Buffer.from(text, "utf8").toString("utf8");
const upToNul: Change = (text) => text.split("\0")[0] ?? "";

const stepsOfKey = [
  ...(["claim", "read", "heartbeat", "complete", "release", "hold", "resolve", "reopen"] as const),
  "readReleased",
] as const;

function changedKeys(change: Change): (platform: Platform) => Partial<Store> {
  return ({ store }) =>
    Object.fromEntries(
      stepsOfKey.map((method) => [
        method,
        (key: string, ...others: unknown[]): unknown =>
          Reflect.apply(store[method], store, [change(key), ...others]),
      ]),
    );
}

/** Every token is changed before it is kept or compared. */
function changedTokens(change: Change): (platform: Platform) => Partial<Store> {
  return ({ store }) => ({
    claim: (key, claim) => store.claim(key, { ...claim, token: change(claim.token) }),
    heartbeat: (key, token, leaseMs) => store.heartbeat(key, change(token), leaseMs),
    complete: (key, token) => store.complete(key, change(token)),
    release: (key, token) => store.release(key, change(token)),
    hold: (key, token, reason) => store.hold(key, change(token), reason),
  });
}

/** The owner, when its token is the same without case. */
function withoutCase(platform: Platform, key: string, token: string): string {
  const owner = ownerOf(platform, key, token);
  return owner.toLowerCase() === token.toLowerCase() ? owner : token;
}

const changesOfKeys: Readonly<Record<string, Change>> = {
  "cuts keys at a NUL": upToNul,
  "keeps keys in UTF-8": throughUtf8,
  "compares keys without case": (key) => key.toLowerCase(),
  "normalises keys": (key) => key.normalize("NFC"),
  "trims keys": (key) => key.trim(),
  "reads escapes in keys": (key) => key.replaceAll(String.raw`\u0000`, "\0"),
};

export const wrongTexts: readonly WrongStore[] = [
  ...Object.entries(changesOfKeys).map(([does, change]): WrongStore => ({
    does,
    fails: "hostile keys of",
    wrong: changedKeys(change),
  })),
  {
    does: "keeps keys as members of an object",
    fails: "hostile keys of",
    wrong: ({ store }) => ({
      claim: (key, claim) =>
        key in {} ? { status: "in-flight", fingerprint: "", remainingMs: 1 } : store.claim(key, claim),
    }),
  },
  { does: "keeps 512 characters of a key", fails: "a key, a", wrong: changedKeys(cutAt(512)) },
  { does: "keeps 512 characters of a token", fails: "a key, a", wrong: changedTokens(cutAt(512)) },
  {
    does: "keeps 256 characters of a reason",
    fails: "a key, a",
    wrong: ({ store }) => ({ hold: (key, token, reason) => store.hold(key, token, reason.slice(0, 256)) }),
  },
  { does: "keeps tokens in UTF-8", fails: "hostile tokens, fing", wrong: changedTokens(throughUtf8) },
  {
    does: "trims reasons",
    fails: "hostile tokens, fing",
    wrong: ({ store }) => ({ hold: (key, token, reason) => store.hold(key, token, reason.trim()) }),
  },
  {
    does: "compares tokens without case",
    fails: "a token is",
    wrong: (platform) => ({
      complete: (key, token) => platform.store.complete(key, withoutCase(platform, key, token)),
    }),
  },
  {
    does: "lists keys in UTF-8",
    fails: "list gives hostile",
    wrong: ({ memory }) => ({
      list(query) {
        const { entries, cursor } = memory.list(query);
        return { cursor, entries: entries.map(({ key, record }) => ({ key: throughUtf8(key), record })) };
      },
    }),
  },
  {
    does: "resolves keys up to a NUL",
    fails: "hostile keys of",
    wrong: ({ store }) => ({
      resolve: (key, outcome, decision) => store.resolve(upToNul(key), outcome, decision),
    }),
  },
  {
    does: "completes keys in UTF-8 in a transaction",
    fails: "completeIn finds hostile",
    wrong: ({ store }) => ({
      completeIn: (tx, key, token) => store.completeIn?.(tx, throughUtf8(key), token) ?? "lost",
    }),
  },
  {
    does: "compares tokens without case in a transaction",
    fails: "completeIn finds hostile",
    wrong: (platform) => ({
      completeIn: (tx, key, token) =>
        platform.store.completeIn?.(tx, key, withoutCase(platform, key, token)) ?? "lost",
    }),
  },
];
