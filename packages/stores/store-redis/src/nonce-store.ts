import type { NonceClaim, NonceStore } from "@countersign/core";
import { encodeText } from "@countersign/idempotency/store";
import { type ResolvedRedisOptions, longestMs } from "./options.ts";
import { oneOf } from "./replies.ts";
import { ScriptedStore } from "./scripted-store.ts";
import { nonceScript } from "./scripts.ts";
import type { ServerCheck } from "./server-check.ts";

/** The nonce store on Redis. A claim is one script on one key. */
export interface RedisNonceStore extends NonceStore {
  claim(claim: NonceClaim): Promise<"fresh" | "seen">;
  /** Gives 0 once the server has answered: Redis removes by itself what has expired. */
  prune(): Promise<number>;
  /** Leaves the client open. A later call throws. */
  close(): void;
}

export class Nonces extends ScriptedStore implements RedisNonceStore {
  readonly #server: ServerCheck;

  constructor(options: ResolvedRedisOptions, server: ServerCheck) {
    super("redis nonce store", options);
    this.#server = server;
  }

  async claim(claim: NonceClaim): Promise<"fresh" | "seen"> {
    this.gate.assertNonce(claim);
    const { scope, nonce, token, retainMs } = claim;
    // Without the length, two pairs of scope and nonce could have one name.
    const name = `nonce:${scope.length}:${encodeText(scope)}:${encodeText(nonce)}`;
    const args = [encodeText(token), String(Math.min(retainMs, longestMs))];
    const reply = await this.run(nonceScript, name, args);
    this.#server.begin();
    return oneOf(reply, ["fresh", "seen"]);
  }
}
