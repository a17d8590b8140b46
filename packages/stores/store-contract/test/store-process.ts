import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { NonceStore } from "@countersign/core";
import type { IdempotencyStore } from "@countersign/idempotency";

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** A process that has stores of its own on a database file. */
export class StoreProcess {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #calls = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on("message", (answer: Answer) => {
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    });
  }

  static async start(file: string): Promise<StoreProcess> {
    const child = fork(fileURLToPath(new URL("children/store-process.mjs", import.meta.url)), [file]);
    await once(child, "message");
    return new StoreProcess(child);
  }

  get idempotency(): IdempotencyStore {
    return this.#proxy("idempotency");
  }

  get nonces(): NonceStore {
    return this.#proxy("nonces");
  }

  async end(): Promise<void> {
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exit;
  }

  #proxy(store: "idempotency" | "nonces"): IdempotencyStore & NonceStore {
    const get = (_target: object, method: string | symbol): unknown =>
      // A store is no promise.
      method === "then" ? undefined : (...parameters: unknown[]) => this.#call({ store, method, parameters });
    return new Proxy({}, { get }) as IdempotencyStore & NonceStore;
  }

  async #call(call: object): Promise<unknown> {
    this.#calls += 1;
    const id = this.#calls;
    const answer = await new Promise<Answer>((resolve) => {
      this.#waiting.set(id, resolve);
      this.#child.send({ ...call, id });
    });
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.value;
  }
}
