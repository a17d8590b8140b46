export type { NonceClaim, NonceStore } from "./nonce-store.ts";
