import type { IdempotencyListQuery } from "@countersign/idempotency";
import { damagedCursor, type ListedRows, type SeenRow } from "@countersign/idempotency/store";
import { runScript } from "./commands.ts";
import type { ResolvedRedisOptions } from "./options.ts";
import { plain, storedText, texts } from "./replies.ts";
import { nameScript, pageScript } from "./scripts.ts";

export interface ListedTable {
  readonly name: string;
  readonly options: ResolvedRedisOptions;
  readonly look: (key: string) => Promise<SeenRow | undefined>;
}

/** A cursor of SCAN, and the server process that gave it. */
interface Position {
  readonly at: string;
  readonly runId: string;
}

const scanCursorForm = /^\d{1,20}$/;
const runIdForm = /^[0-9a-f]{40}$/;
const cursorForm = /^(?<at>\d{1,20})\.(?<runId>[0-9a-f]{40})$/;

/** Reads one page by SCAN: a key that stays throughout is listed at least once. */
export async function listKeys(
  table: ListedTable,
  { state, cursor, limit }: IdempotencyListQuery,
): Promise<ListedRows> {
  const position = cursor === undefined ? undefined : parseCursor(table.name, cursor);
  const start = await startOfNames(table);
  const { names, next } = await scan(table, { position, pattern: `${literal(start)}*`, limit });
  const keys = [...new Set(names)].flatMap((found) => keyOf(found, start) ?? []);
  const found = await Promise.all(keys.map((key) => table.look(key)));
  const rows = keys.flatMap((key, index) => {
    const row = found[index];
    return row?.state === state ? [{ key, row }] : [];
  });
  return { rows, cursor: next };
}

function parseCursor(store: string, cursor: unknown): Position {
  const { at, runId } = (typeof cursor === "string" ? cursorForm.exec(cursor)?.groups : undefined) ?? {};
  if (at === undefined || runId === undefined) throw damagedCursor(store);
  return { at, runId };
}

/** Asks the server how its names begin: ioredis puts its `keyPrefix` before keys, but not before a pattern. */
async function startOfNames({ name, options }: ListedTable): Promise<string> {
  const start = `${options.prefix}:key:`;
  const onServer = plain(await runScript(options, nameScript, start, []));
  if (!onServer.endsWith(start)) throw new Error(`${name}: the client changes the names of keys`);
  return onServer;
}

async function scan(
  { name, options }: ListedTable,
  { position, pattern, limit }: { position: Position | undefined; pattern: string; limit: number },
): Promise<{ names: readonly string[]; next: string | undefined }> {
  const reply = await runScript(options, pageScript, undefined, [
    position?.at ?? "0",
    pattern,
    String(limit),
  ]);
  if (!Array.isArray(reply) || reply.length !== 3) throw new Error(`${name}: SCAN gave no page`);
  const [next, runId] = [plain(reply[0]), plain(reply[2])];
  if (position !== undefined && position.runId !== runId) throw endedCursor(name);
  if (!scanCursorForm.test(next)) throw new Error(`${name}: SCAN gave no cursor`);
  const names = texts(reply[1]);
  if (next === "0") return { names, next: undefined };
  // A later page could then be another process's, and miss keys.
  if (!runIdForm.test(runId)) throw new Error(`${name}: a list of several pages needs run_id of INFO`);
  return { names, next: `${next}.${runId}` };
}

function endedCursor(store: string): TypeError {
  return new TypeError(
    `${store}: the cursor is of another server, or of one that was started anew; begin with the first page`,
  );
}

function literal(text: string): string {
  return text.replaceAll(/[\\*?[\]]/g, String.raw`\$&`);
}

/** Reads the key from a name; undefined for a name that no store has written. */
function keyOf(found: string, start: string): string | undefined {
  const key = found.startsWith(start) ? storedText(found.slice(start.length)) : undefined;
  return key !== undefined && key.length >= 1 && key.length <= 512 ? key : undefined;
}
