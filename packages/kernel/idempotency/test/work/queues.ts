import { listen } from "@countersign/core/internal";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import {
  openStores as openWorkStores,
  quick,
  type Db,
  type Stores,
} from "@countersign/test-support/runs/work-stores.ts";
import { createTaskQueue, type TaskQueue } from "@countersign/idempotency/work";

export { changed, type Db, type Stores } from "@countersign/test-support/runs/work-stores.ts";

type TaskQueueOptions = Parameters<typeof createTaskQueue<Db, "sync">>[0];

export type Queue = TaskQueue<Db, "sync">;

export const queue = "jobs";

/** A database with a table of work, and of the app's own notes. The clock stands still. */
export function openStores(): ReturnType<typeof openWorkStores> {
  const opened = openWorkStores();
  opened.db.exec("CREATE TABLE notes (note TEXT NOT NULL)");
  return opened;
}

export function notesOf(db: Db): readonly string[] {
  const rows = db.prepare("SELECT note FROM notes ORDER BY rowid").all() as { note: string }[];
  return rows.map(({ note }) => note);
}

export function writeNote(tx: Db, note: string): void {
  tx.prepare("INSERT INTO notes (note) VALUES (?)").run(note);
}

/** A queue that ends with the test. */
export function queueOn(stores: Stores, options: Partial<TaskQueueOptions>): Queue {
  const made = createTaskQueue({ stores, queue, ...quick, ...options });
  afterTest(() => made.drain({ timeoutMs: 1_000 }));
  return made;
}

type Opened = ReturnType<typeof openStores>;

/** A queue with the one task "1", whose attempt has ended; with `until` the clock goes on, and attempts follow until that outcome. */
export async function attempted(
  given: Partial<TaskQueueOptions> | ((opened: Opened) => Partial<TaskQueueOptions>),
  { until, task = {} }: { readonly until?: string; readonly task?: object } = {},
) {
  const opened = openStores();
  const told = heard();
  const jobs = queueOn(opened.stores, typeof given === "function" ? given(opened) : given);
  jobs.start();
  await addTo(opened.stores, jobs, { id: "1", body: "", ...task });
  await eventually(() => {
    if (until !== undefined) opened.clock.advance(10);
    return until === undefined ? told.outcomes.length > 0 : told.outcomes.includes(until);
  });
  return { ...opened, ...told, jobs, record: await opened.stores.work.read(queue, "1") };
}

/** Adds tasks in a transaction of their own. */
export async function addTo(
  { transactions }: Stores,
  tasks: Queue,
  ...added: Parameters<Queue["add"]>[1][]
): Promise<void> {
  await transactions.run((tx) => void tasks.add(tx, ...added));
}

/** The words of notices and of attempts of {@link queue}, and their errors, until the test ends. */
export function heard(): { codes: string[]; messages: string[]; outcomes: string[]; errors: unknown[] } {
  const [codes, messages, outcomes]: [string[], string[], string[]] = [[], [], []];
  const errors: unknown[] = [];
  const end = listen("test", {
    notice({ guard, code, message }) {
      if (guard !== "createTaskQueue") return;
      codes.push(code);
      messages.push(message);
    },
    task({ outcome, error }) {
      outcomes.push(String(outcome));
      errors.push(error);
    },
  });
  afterTest(end);
  return { codes, messages, outcomes, errors };
}

export const lost = (): Promise<never> => Promise.reject(new Error("connection lost"));
