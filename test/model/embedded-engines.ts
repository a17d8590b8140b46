import { rmSync } from "node:fs";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import type { PayStep } from "@countersign/store-contract/model";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import {
  type Connection,
  type Open,
  temporaryFile,
} from "../../packages/stores/store-sqlite/test/connections.ts";
import { type Clock, type Engine, type Platform, type ProcessIndex, retentionMs } from "./engine.ts";

/** The store in memory: both processes are one. */
export function memoryEngine(): Engine {
  const open = async (clock: Clock): Promise<Platform> => {
    const store = memoryIdempotencyStore({ max: 8, retentionMs, now: () => clock.nowMs });
    return { store: () => store, restart() {}, close: () => store.close() };
  };
  return { pays: false, numRuns: 200, prunes: true, open, close: async () => {} };
}

/** SQLite: each process has a connection of its own to one file. */
export function sqliteEngine(connect: Open): Engine {
  return {
    pays: true,
    numRuns: 40,
    prunes: true,
    open: async (clock) => openSqlite(connect, clock),
    close: async () => {},
  };
}

function openSqlite(connect: Open, clock: Clock): Platform {
  const file = temporaryFile();
  const start = () => {
    const database = connect(file);
    const now = () => clock.nowMs;
    const { idempotency: store } = createSqliteStores({ database, retentionMs, pruneIntervalMs: 0, now });
    return { database, store };
  };
  const end = ({ store, database }: ReturnType<typeof start>) => {
    store.close();
    database.close();
  };
  const running: [ReturnType<typeof start>, ReturnType<typeof start>] = [start(), start()];
  running[0].database.exec("CREATE TABLE payments (key TEXT NOT NULL)");

  const restart = (index: ProcessIndex): void => {
    end(running[index]);
    running[index] = start();
  };
  const payOn = (database: Connection, { key, token }: PayStep, by: ProcessIndex): unknown => {
    database.prepare("INSERT INTO payments VALUES (?)").run(JSON.stringify(key));
    return running[by].store.completeIn(database, key, token);
  };
  return {
    store: (index) => running[index].store,
    restart,
    payments: {
      async pay(by, step) {
        const { database } = running[by];
        if (step.ending === "crash") {
          database.exec("BEGIN IMMEDIATE");
          const answer = payOn(database, step, by);
          // What a killed process leaves behind. close() alone keeps the lock for as long as libsql's statements live.
          database.exec("ROLLBACK");
          restart(by);
          return answer;
        }
        let answer: unknown;
        try {
          withImmediateTransaction(database, (tx) => {
            answer = payOn(tx, step, by);
            if (answer !== "ok" || step.ending === "rollback") throw new RolledBack();
          });
        } catch (error) {
          if (!(error instanceof RolledBack)) throw error;
        }
        return answer;
      },
      async paidKeys() {
        const rows = running[0].database.prepare("SELECT key FROM payments").all() as { key: string }[];
        return rows.map(({ key }) => String(JSON.parse(key)));
      },
    },
    close() {
      end(running[0]);
      end(running[1]);
      for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
    },
  };
}

/** Thrown inside a transaction to end it. */
class RolledBack extends Error {}
