/** Whatever JSON can hold. Members that are undefined are left out. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue | undefined };

/** How a payout ended, as the platform knows it. Further members are kept as given: write an amount as text. */
export interface OutcomeReport {
  /** Of the payout; at most 512 characters. */
  readonly idempotencyKey: string;
  /** The service's word for it, such as `SETTLED` or `FAILED`. */
  readonly status: string;
  readonly settledAt?: Date | undefined;
  /** Why the payout failed. */
  readonly reason?: string | undefined;
  readonly [member: string]: JsonValue | Date | undefined;
}

/** An {@link OutcomeReport} as it was kept, for `body`, `url` and `headers`. */
export interface Outcome {
  readonly idempotencyKey: string;
  readonly status: string;
  /** ISO 8601 in UTC, with milliseconds. */
  readonly settledAt?: string;
  readonly reason?: string;
  readonly [member: string]: JsonValue | undefined;
}

const place = "outcomes.report()";

/** The text that a task keeps: equal outcomes have equal texts, in whatever order their members were given. Throws a TypeError. */
export function textOf(report: OutcomeReport): string {
  const { idempotencyKey, status, settledAt, reason, ...members } = report;
  assertText("idempotencyKey", idempotencyKey);
  assertText("status", status);
  if (reason !== undefined) assertText("reason", reason);
  if (settledAt !== undefined && !isTime(settledAt)) throw unfit("settledAt", "a valid Date");
  const time = settledAt?.toISOString();
  return JSON.stringify(
    sorted({ ...members, idempotencyKey, status, settledAt: time, reason }, "the outcome"),
  );
}

/** Reads what {@link textOf} wrote. */
export function outcomeOf(text: string): Outcome {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by textOf()
  return JSON.parse(text) as Outcome;
}

/** The body that the sandbox and the example platform show. The service's own is agreed with it. */
export function exampleBody({ idempotencyKey, status, reason, settledAt, ...members }: Outcome): JsonValue {
  return { idempotency_key: idempotencyKey, ...members, status, reason, settled_at: settledAt };
}

function assertText(name: string, value: unknown): void {
  if (typeof value !== "string" || value === "") throw unfit(name, "a non-empty string");
}

function isTime(value: unknown): boolean {
  return value instanceof Date && !Number.isNaN(value.getTime());
}

/** A copy whose members are in one order. Refuses what JSON would change without a word. */
function sorted(value: unknown, name: string): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (Array.isArray(value)) return value.map((item, index) => sorted(item, `${name}[${index}]`));
  if (!isPlainObject(value))
    throw unfit(name, "a JSON value: text, a finite number, true, false, null, a list or an object");
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([key, member]) => [key, sorted(member, `${name}.${key}`)]));
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function unfit(name: string, expected: string): TypeError {
  return new TypeError(`${place}: ${name} must be ${expected}`);
}
