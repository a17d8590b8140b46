import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SqliteStores, createStores } from "@countersign/store-sql";
import { createInbox, type CreateInboxOptions, type Inbox } from "countersign/webhooks";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { exchange, withServer } from "@countersign/test-support/servers/wire.ts";
import express from "express";
import Database from "libsql";
import { delivery, optionsWith, siteOf } from "../endpoint/endpoint.ts";
import { eventually } from "../events/event-kit.ts";

export type Connection = InstanceType<typeof Database>;
export type TestInbox = Inbox<Connection, "sync">;
type TestOptions = Partial<CreateInboxOptions<Connection, "sync">>;

/** A database that processes share; each has a connection of its own. */
export class SharedDatabase {
  readonly #folder = mkdtempSync(join(tmpdir(), "inbox-"));
  readonly #now: (() => number) | undefined;

  constructor(now?: () => number) {
    this.#now = now;
    afterTest(() => rmSync(this.#folder, { recursive: true }));
  }

  /** As a process begins. */
  open(): Process {
    const database = new Database(join(this.#folder, "app.db"));
    database.exec("CREATE TABLE IF NOT EXISTS effects (event_id TEXT NOT NULL) STRICT");
    const stores = createStores({ database, pruneIntervalMs: 0, now: this.#now });
    return new Process(database, stores);
  }
}

export class Process {
  readonly database: Connection;
  readonly stores: SqliteStores<Connection>;

  constructor(database: Connection, stores: SqliteStores<Connection>) {
    this.database = database;
    this.stores = stores;
    afterTest(() => {
      stores.close();
      database.close();
    });
  }

  /** An inbox that looks often and pauses briefly; it is drained after the test. */
  inbox(options: TestOptions = {}): TestInbox {
    const inbox = createInbox({
      stores: this.stores,
      fallback: "ignore",
      name: "inbox",
      pollMs: 10,
      backoffMs: 1,
      onError: () => {},
      ...options,
    });
    afterTest(() => inbox.drain({ timeoutMs: 1_000 }));
    return inbox;
  }

  write(tx: Connection, eventId: string): void {
    tx.prepare("INSERT INTO effects VALUES (?)").run(eventId);
  }

  /** The effects that committed, in their order. */
  effects(): string[] {
    const rows = this.database.prepare("SELECT event_id FROM effects ORDER BY rowid").all();
    return (rows as { event_id: string }[]).map(({ event_id }) => event_id);
  }

  async task(id: string, queue = "inbox") {
    const task = await this.stores.work.read(queue, id);
    if (task === undefined) throw new Error(`there is no task ${id}`);
    return task;
  }

  /** Resolves when these tasks have ended. */
  async ended(...ids: readonly string[]): Promise<void> {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    for (const id of ids) await this.endedIn("inbox", id);
  }

  async endedIn(queue: string, id: string): Promise<void> {
    await eventually(async () => (await this.task(id, queue)).state !== "open");
  }
}

/** Sends a webhook through Express; resolves to its status. */
export async function send(inbox: TestInbox, body: string): Promise<number> {
  const site = siteOf({ factory: express }, optionsWith({ handler: inbox, hmac: { limit: "100kb" } }));
  const answer = await withServer(site, (port) => exchange(port, delivery({ body })));
  return Number(answer.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
}

interface EventFields {
  readonly buyer?: string;
  /** Nanoseconds within a second. */
  readonly at?: number;
}

/** The text of a buyer's event. */
export function buyerEvent(event_id: string, { buyer = "b1", at = 0 }: EventFields = {}): string {
  return JSON.stringify({
    event_id,
    timestamp: `2024-01-02T03:04:05.${String(at).padStart(9, "0")}Z`,
    type: "buyer.status_changed",
    data: { buyer_id: buyer, old_status: "PENDING", new_status: "ACTIVE" },
  });
}

/** The text of an event of a type that the spec does not name. */
export function otherEvent(event_id: string, type = "loan.granted"): string {
  return JSON.stringify({ event_id, timestamp: "2024-01-02T03:04:05Z", type, data: { loan_id: "l1" } });
}

export function webhook(...events: readonly string[]): string {
  return `{"webhook_id":"wh_1","timestamp":"2024-01-02T03:04:05Z","events":[${events.join(",")}]}`;
}
