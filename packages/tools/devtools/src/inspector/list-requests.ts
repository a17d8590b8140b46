import type { Masker } from "../loopback/masking.ts";
import type { RecordedRequest } from "./recorded-request.ts";
import { maskerOfRequest } from "./secrets.ts";
import { attemptOf, summaryOf } from "./shown-request.ts";

export interface Wanted {
  readonly outcome: RecordedRequest["outcome"] | undefined;
  /** A part of a key, event id, event type, code or path, in any case. */
  readonly search: string;
  /** Rows whose newest attempt is older than this one. */
  readonly before: number;
  readonly limit: number;
}

const mostAttempts = 20;

/** One row for each key or webhook, newest attempt first; a request without either has a row of its own. */
export function listedRequests(newest: readonly RecordedRequest[], wanted: Wanted, mask: Masker): object {
  const search = wanted.search.toLowerCase();
  const rows = new Map<string, RecordedRequest[]>();
  for (const record of newest) {
    if (wanted.outcome !== undefined && record.outcome !== wanted.outcome) continue;
    if (search !== "" && !isFound(record, search)) continue;
    const name = foldedBy(record);
    const row = rows.get(name);
    if (row === undefined) rows.set(name, [record]);
    else row.push(record);
  }
  const all = [...rows.values()];
  const shown = all.filter(([first]) => first !== undefined && first.id < wanted.before);
  const requests = shown.slice(0, wanted.limit).flatMap((row) => rowOf(row, mask));
  return { requests, total: all.length };
}

function rowOf(row: readonly RecordedRequest[], mask: Masker): readonly object[] {
  const [newest] = row;
  if (newest === undefined) return [];
  const summary = mask(summaryOf(newest, maskerOfRequest(newest)));
  const attempts = row.length === 1 ? [] : row.slice(0, mostAttempts).map(attemptOf);
  return [{ ...summary, attemptCount: row.length, oldestId: row.at(-1)?.id, attempts }];
}

function foldedBy({ id, idempotencyKey, events: [event] }: RecordedRequest): string {
  if (idempotencyKey !== undefined) return `key ${idempotencyKey}`;
  return event === undefined ? `request ${id}` : `webhook ${event.webhookId || event.eventId}`;
}

/** The query of a target is not looked at: it may hold credentials. */
function isFound(
  { idempotencyKey = "", target, verdicts, events, life }: RecordedRequest,
  search: string,
): boolean {
  const texts = [
    idempotencyKey,
    target.split("?", 1)[0] ?? "",
    ...verdicts.map(({ code = "" }) => code),
    ...life.map(({ what, outcome = "" }) => (what === "notice" ? outcome : "")),
    ...events.flatMap(({ type, eventId, webhookId }) => [type, eventId, webhookId]),
  ];
  return texts.some((text) => text.toLowerCase().includes(search));
}
