import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { withDeadline } from "@countersign/core";
import type { Row } from "@countersign/idempotency/store";
import { assertEngine, readEngine } from "./engine-check.ts";
import { explained } from "./errors.ts";
import { faultOf } from "./faults.ts";
import { runAlone } from "./lone-statement.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { factoryName } from "./options.ts";
import { type PostgresQueryable, rowsOf, singleRow } from "./queryable.ts";
import { assertServer, assertVersion, readServer, readStandbys, readVersion } from "./server-check.ts";
import { checkedTables } from "./table-keys.ts";

// Where the pool's default isolation is SERIALIZABLE, claims of new keys conflict in one page of an index. Each time one succeeds.
const maxAttempts = 20;
const longestPauseMs = 100;

/** For the questions that all steps wait for: a line that never answers must not stop them for ever. */
export const checkTimeoutMs = 30_000;

/** How often a process asks whether the server has synchronous standbys. */
const standbysEveryMs = 60_000;

export function checkLate(): Error {
  return new Error(`${factoryName}: the server did not answer within ${checkTimeoutMs} ms`);
}

/** Runs statements, each in a transaction of its own. Checks the server before the first one. */
export class Engine {
  readonly #options: ResolvedPostgresOptions;
  #isReady = false;
  #isSynchronous = false;
  #standbysReadMs = 0;
  #checking: Promise<void> | undefined;
  /** With the option `prepare`: a name for each text, of which the stores have a fixed number. */
  readonly #names = new Map<string, string>();

  constructor(options: ResolvedPostgresOptions) {
    this.#options = options;
  }

  /** Whether commits wait for standbys, by the server's settings of a minute ago or later. */
  get isSynchronous(): boolean {
    return this.#isSynchronous;
  }

  /** Reads {@link isSynchronous} again where it is too old. Takes a connection for it. */
  async refresh(): Promise<void> {
    if (performance.now() - this.#standbysReadMs < standbysEveryMs) return;
    // The steps that come meanwhile go by what is known.
    this.#standbysReadMs = performance.now();
    try {
      const statement = { text: readStandbys, values: [], name: undefined };
      this.#noteStandbys(singleRow(rowsOf(await runAlone(this.#options.pool, statement, false))));
    } catch (error) {
      this.#standbysReadMs -= standbysEveryMs;
      throw error;
    }
  }

  /** Checks server and tables once. After a failure the next call checks again. */
  async ready(): Promise<void> {
    if (this.#isReady) return;
    this.#checking ??= withDeadline(this.#check(), checkTimeoutMs, checkLate);
    try {
      await this.#checking;
      this.#isReady = true;
    } finally {
      this.#checking = undefined;
    }
  }

  async run(store: string, text: string, values: unknown[]): Promise<readonly Row[]> {
    if (!this.#isReady) await this.ready();
    await this.refresh();
    for (let attempt = 1; ; attempt++) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
        return await this.#runOnce(text, values);
      } catch (error) {
        // A deadlock, or a conflict where the pool's default isolation is stricter than READ COMMITTED. Nothing of the statement happened.
        if (faultOf(error) === "conflict" && attempt < maxAttempts) {
          // oxlint-disable-next-line no-await-in-loop -- as above
          await sleep(Math.random() * Math.min(2 ** attempt, longestPauseMs));
          continue;
        }
        throw explained(store, this.#options.names, error);
      }
    }
  }

  /** Runs a statement in the caller's transaction, which only the caller can repeat. */
  async runIn(
    tx: PostgresQueryable,
    store: string,
    text: string,
    values: unknown[],
  ): Promise<readonly Row[]> {
    try {
      return rowsOf(await tx.query(text, values));
    } catch (error) {
      throw explained(store, this.#options.names, error);
    }
  }

  async #runOnce(text: string, values: unknown[]): Promise<readonly Row[]> {
    const { pool, prepare } = this.#options;
    const statement = { text, values, name: prepare ? this.#nameOf(text) : undefined };
    return rowsOf(await runAlone(pool, statement, this.#isSynchronous));
  }

  #noteStandbys(row: Row): void {
    this.#standbysReadMs = performance.now();
    this.#isSynchronous = row["is_synchronous"] === true;
  }

  // Of the text, so that two processes behind one pooler mean the same by it.
  #nameOf(text: string): string {
    let name = this.#names.get(text);
    if (name === undefined) {
      name = `countersign_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
      this.#names.set(text, name);
    }
    return name;
  }

  async #check(): Promise<void> {
    const { names } = this.#options;
    try {
      assertEngine(factoryName, singleRow(await this.#runOnce(readEngine, [])));
      const read = singleRow(await this.#runOnce(readServer, checkedTables(names)));
      assertServer(read, this.#options);
      const [version] = await this.#runOnce(readVersion(this.#options), []);
      assertVersion(version, this.#options);
      this.#noteStandbys(read);
    } catch (error) {
      throw explained(factoryName, names, error);
    }
  }
}
