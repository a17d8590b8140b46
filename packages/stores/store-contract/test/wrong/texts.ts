import type { IdempotencyListing, IdempotencyListQuery } from "@countersign/idempotency";
import type { Platform, Store } from "../platform.ts";
import { type WrongStore, ownerOf } from "./wrong-store.ts";

type Change = (text: string) => string;

const cutAt =
  (length: number): Change =>
  (text) =>
    text.slice(0, length);
const throughUtf8: Change = (text) => Buffer.from(text, "utf8").toString("utf8");
const unescaped: Change = (text) => text.replaceAll(String.raw`\u0000`, "\0");
const upToNul: Change = (text) => text.split("\0")[0] ?? "";
const letters: Change = (text) => text.normalize("NFC");

const ofEveryKey = [
  "hostile keys of up",
  "list gives hostile keys",
  "every step finds a",
  "completeIn finds hostile keys",
];

/** Every key is changed before it is used. */
function changedKeys(change: Change): (platform: Platform) => Partial<Store> {
  return ({ store }) => ({
    claim: (key, claim) => store.claim(change(key), claim),
    read: (key) => store.read(change(key)),
    heartbeat: (key, token, leaseMs) => store.heartbeat(change(key), token, leaseMs),
    complete: (key, token) => store.complete(change(key), token),
    release: (key, token) => store.release(change(key), token),
    hold: (key, token, reason) => store.hold(change(key), token, reason),
    resolve: (key, outcome, decision) => store.resolve(change(key), outcome, decision),
    reopen: (key, decision) => store.reopen(change(key), decision),
    readReleased: (key) => store.readReleased(change(key)),
  });
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

function listedAs(change: Change): (platform: Platform) => Partial<Store> {
  return ({ memory }) => ({
    list(query: IdempotencyListQuery): IdempotencyListing {
      const { entries, cursor } = memory.list(query);
      return { cursor, entries: entries.map(({ key, record }) => ({ key: change(key), record })) };
    },
  });
}

/** Tokens that are equal after a change stand for each other. */
function comparedAs(change: Change): (platform: Platform) => Partial<Store> {
  return (platform) => {
    const known = (key: string, token: string): string => {
      const owner = ownerOf(platform, key, token);
      return change(owner) === change(token) ? owner : token;
    };
    const { store } = platform;
    return { complete: (key, token) => store.complete(key, known(key, token)) };
  };
}

/** Wrong with texts. */
export const wrongTexts: readonly WrongStore[] = [
  {
    does: "cuts keys at a NUL",
    fails: ofEveryKey,
    wrong: changedKeys(upToNul),
  },
  {
    does: "keeps keys in UTF-8",
    fails: ofEveryKey,
    wrong: changedKeys(throughUtf8),
  },
  {
    does: "compares keys without case",
    fails: ofEveryKey,
    wrong: changedKeys((key) => key.toLowerCase()),
  },
  {
    does: "normalises keys",
    fails: ofEveryKey,
    wrong: changedKeys(letters),
  },
  {
    does: "trims keys",
    fails: ofEveryKey,
    wrong: changedKeys((key) => key.trim()),
  },
  {
    does: "reads escapes in keys",
    fails: ofEveryKey,
    wrong: changedKeys(unescaped),
  },
  {
    does: "keeps 511 characters of a key",
    fails: [
      "hostile keys of up",
      "a key of 10",
      "list gives hostile keys",
      "every step finds a",
      "completeIn finds hostile keys",
    ],
    wrong: changedKeys(cutAt(511)),
  },
  {
    does: "keeps 512 characters of a key",
    fails: ["a key of 10"],
    wrong: changedKeys(cutAt(512)),
  },
  {
    does: "keeps keys as members of an object",
    fails: ofEveryKey,
    wrong: ({ store }) => ({
      claim: (key, claim) =>
        key in {} ? { status: "in-flight", fingerprint: "", remainingMs: 1 } : store.claim(key, claim),
    }),
  },
  {
    does: "keeps tokens in UTF-8",
    fails: ["hostile tokens, fingerprints and", "a token is compared", "completeIn finds hostile keys"],
    wrong: changedTokens(throughUtf8),
  },
  {
    does: "keeps 512 characters of a token",
    fails: ["a token, a fingerprint"],
    wrong: changedTokens(cutAt(512)),
  },
  {
    does: "compares tokens without case",
    fails: ["a token is compared"],
    wrong: comparedAs((token) => token.toLowerCase()),
  },
  {
    does: "trims reasons",
    fails: ["hostile tokens, fingerprints and", "hostile names, notes and"],
    wrong: ({ store }) => ({ hold: (key, token, reason) => store.hold(key, token, reason.trim()) }),
  },
  {
    does: "keeps 256 characters of a reason",
    fails: ["a token, a fingerprint"],
    wrong: ({ store }) => ({ hold: (key, token, reason) => store.hold(key, token, reason.slice(0, 256)) }),
  },
  { does: "lists keys in UTF-8", fails: ["list gives hostile keys"], wrong: listedAs(throughUtf8) },
  {
    does: "releases keys in UTF-8",
    fails: ["every step finds a"],
    wrong: ({ store }) => ({ release: (key, token) => store.release(throughUtf8(key), token) }),
  },
  {
    does: "resolves keys up to a NUL",
    fails: ["every step finds a"],
    wrong: ({ store }) => ({
      resolve: (key, outcome, decision) => store.resolve(upToNul(key), outcome, decision),
    }),
  },
  {
    does: "completes keys in UTF-8 in a transaction",
    fails: ["completeIn finds hostile keys"],
    wrong: ({ store }) => ({
      completeIn: (tx, key, token) => store.completeIn?.(tx, throughUtf8(key), token) ?? "lost",
    }),
  },
  {
    does: "compares tokens without case in a transaction",
    fails: ["completeIn finds hostile keys"],
    wrong: (platform) => ({
      completeIn(tx, key, token) {
        const owner = ownerOf(platform, key, token);
        const isEqual = owner.toLowerCase() === token.toLowerCase();
        return platform.store.completeIn?.(tx, key, isEqual ? owner : token) ?? "lost";
      },
    }),
  },
];
