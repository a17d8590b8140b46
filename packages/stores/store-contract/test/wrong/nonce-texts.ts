import { type WrongNonceStore, changed } from "./wrong-nonce-store.ts";

export const wrongNonceTexts: readonly WrongNonceStore[] = [
  {
    does: "joins scope and nonce by nothing",
    fails: "hostile scopes and nonces",
    platform: { nameOf: ({ scope, nonce }) => scope + nonce },
  },
  {
    does: "joins scope and nonce by a colon",
    fails: "hostile scopes and nonces",
    platform: { nameOf: ({ scope, nonce }) => `${scope}:${nonce}` },
  },
  {
    does: "compares scopes without case",
    fails: "hostile scopes and nonces",
    ...changed(({ scope }) => ({ scope: scope.toLowerCase() })),
  },
  {
    does: "trims nonces",
    fails: "hostile scopes and nonces",
    ...changed(({ nonce }) => ({ nonce: nonce.trim() })),
  },
  {
    does: "keeps 127 characters of a nonce",
    fails: "hostile scopes and nonces",
    ...changed(({ nonce }) => ({ nonce: nonce.slice(0, 127) })),
  },
  {
    does: "compares tokens without case",
    fails: "the token of a nonce",
    ...changed(({ token }) => ({ token: token.toLowerCase() })),
  },
  {
    does: "keeps 512 characters of a scope",
    fails: "a scope or a token",
    ...changed(({ scope }) => ({ scope: scope.slice(0, 512) })),
  },
  {
    does: "keeps 512 characters of a token",
    fails: "a scope or a token",
    ...changed(({ token }) => ({ token: token.slice(0, 512) })),
  },
];
