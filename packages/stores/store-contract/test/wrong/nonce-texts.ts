import { type WrongNonceStore, changed } from "./wrong-nonce-store.ts";

/** Wrong with texts. */
export const wrongNonceTexts: readonly WrongNonceStore[] = [
  {
    does: "joins scope and nonce by nothing",
    fails: ["the same nonce of another scope is another nonce, wherever the two are cut"],
    platform: { nameOf: ({ scope, nonce }) => scope + nonce },
  },
  {
    does: "joins scope and nonce by a colon",
    fails: ["the same nonce of another scope is another nonce, wherever the two are cut"],
    platform: { nameOf: ({ scope, nonce }) => `${scope}:${nonce}` },
  },
  {
    does: "leaves the scope out",
    fails: [
      "the same nonce of another scope is another nonce, wherever the two are cut",
      "hostile scopes are all taken, and kept apart",
      "a scope or a token of 10 kB is taken as it is or refused, never cut",
    ],
    platform: { nameOf: ({ nonce }) => nonce },
  },
  {
    does: "compares scopes without case",
    fails: ["hostile scopes are all taken, and kept apart"],
    ...changed(({ scope }) => ({ scope: scope.toLowerCase() })),
  },
  {
    does: "cuts scopes at a NUL",
    fails: [
      "the same nonce of another scope is another nonce, wherever the two are cut",
      "hostile scopes are all taken, and kept apart",
    ],
    ...changed(({ scope }) => ({ scope: scope.split("\0")[0] ?? "" })),
  },
  {
    does: "trims nonces",
    fails: ["hostile nonces are all taken, and kept apart"],
    ...changed(({ nonce }) => ({ nonce: nonce.trim() })),
  },
  {
    does: "keeps 127 characters of a nonce",
    fails: ["hostile nonces are all taken, and kept apart"],
    ...changed(({ nonce }) => ({ nonce: nonce.slice(0, 127) })),
  },
  {
    does: "compares tokens without case",
    fails: ["the token of a nonce is compared as it was given: what looks like it is a stranger's"],
    ...changed(({ token }) => ({ token: token.toLowerCase() })),
  },
  {
    does: "keeps 512 characters of a scope",
    fails: ["a scope or a token of 10 kB is taken as it is or refused, never cut"],
    ...changed(({ scope }) => ({ scope: scope.slice(0, 512) })),
  },
  {
    does: "keeps 512 characters of a token",
    fails: ["a scope or a token of 10 kB is taken as it is or refused, never cut"],
    ...changed(({ token }) => ({ token: token.slice(0, 512) })),
  },
];
