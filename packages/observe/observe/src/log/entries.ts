import { isGuardError, type GuardEvent, type Verdict } from "@countersign/core";
import {
  isError,
  LineLimit,
  listen,
  option,
  warnOfError,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";

export interface LogOptions {
  /** Whether passes are logged too, each of them. Default false. */
  readonly passes?: boolean | undefined;
  /** Refusals, undecided requests and notices of one code a minute, at most; one more entry counts the rest. Default 10. */
  readonly linesPerMinute?: number | undefined;
  /** Says what the caller of a refusal (4xx) has to change. Called after the request, as it may cost more than the check. Default none. */
  readonly explain?: ((event: GuardEvent) => Explanation | Promise<Explanation>) | undefined;
  /** Calls of `explain` a minute, at most. Default 10. */
  readonly explainPerMinute?: number | undefined;
}

type Explanation = string | undefined;

export const table = {
  passes: option.boolean(false),
  linesPerMinute: option.integer({ min: 1, max: 1_000_000, fallback: 10 }),
  explain: option.optional(option.call<NonNullable<LogOptions["explain"]>>()),
  explainPerMinute: option.integer({ min: 1, max: 10_000, fallback: 10 }),
} satisfies OptionTable<LogOptions, unknown>;

export interface Entry {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
  /** Wire text is escaped and cut; no header, body or signature. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
}

/** Writes refusals, notices and held keys. Returns what ends it. */
export function writeEntries(
  factoryName: string,
  { passes, linesPerMinute, explain, explainPerMinute }: ReadOptions<typeof table>,
  write: (entry: Entry) => void,
): () => void {
  let isEnded = false;
  // Strangers cause refusals as fast as they send requests.
  const limit = new LineLimit(linesPerMinute, (message, code) => {
    if (!isEnded) write({ level: "warn", message, fields: { code } });
  });
  const mayExplain = perMinute(explainPerMinute);
  const end = listen(factoryName, {
    verdict(event) {
      if (event.outcome === "pass" ? !passes : !limit.admits(event.code ?? "no code")) return;
      write(entryOf(event));
      if (explain === undefined || event.outcome !== "reject" || !mayExplain()) return;
      // After the answer: no request waits for it.
      setImmediate(() => void writeExplanation(event));
    },
    notice({ guard, code, message, error }) {
      if (limit.admits(code)) write({ level: "warn", message, fields: { guard, code }, error });
    },
    settled({ guard, key, outcome }) {
      // The others that matter are notices.
      if (outcome !== "held") return;
      write({ level: "warn", message: "a key is held for an operator", fields: { guard, key } });
    },
  });
  return () => {
    isEnded = true;
    end();
  };

  async function writeExplanation(event: GuardEvent): Promise<void> {
    try {
      const message = await explain?.(event);
      if (message === undefined) return;
      write({ level: "warn", message, fields: { guard: event.guard, code: event.code, id: event.id } });
    } catch (error) {
      warnOfError(factoryName, "caught what explain threw", error);
    }
  }
}

const levels = { pass: "info", reject: "warn", error: "error" } as const;
const messages = {
  pass: "request passed",
  reject: "request refused",
  error: "request not decided",
} as const;

function entryOf(event: GuardEvent): Entry {
  const { outcome, error } = event;
  const fields = fieldsOf(event);
  const level = levels[outcome];
  const message = messages[outcome];
  if (outcome !== "reject") return { level, message, fields, error };
  // The caller's fault: its code is enough, without a stack.
  const reason = isError(error) ? error.message : undefined;
  const docs = isGuardError(error) ? error.docs : undefined;
  return { level, message, fields: { ...fields, reason, docs } };
}

function fieldsOf({ req: _req, error: _error, ...verdict }: GuardEvent): Partial<Verdict> {
  return Object.fromEntries(Object.entries(verdict).filter(([, value]) => value !== undefined));
}

export function isLogger(given: unknown): given is Record<Entry["level"], (...args: unknown[]) => void> {
  return Object.values(levels).every((level) => typeof Object(given)[level] === "function");
}

const windowMs = 60_000;

function perMinute(max: number): () => boolean {
  let endsAtMs = 0;
  let count = 0;
  return () => {
    const nowMs = performance.now();
    if (nowMs >= endsAtMs) {
      endsAtMs = nowMs + windowMs;
      count = 0;
    }
    count += 1;
    return count <= max;
  };
}
