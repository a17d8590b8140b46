import { randomUUID } from "node:crypto";
import { isError } from "../errors.ts";
import { isGuardError, type GuardError, type Verdict, type VerdictFacts } from "../guard-error.ts";
import { createRequestFact, type RequestFact } from "../request-fact.ts";
import { escapeForLog } from "../wire-text.ts";
import { guardChannel } from "./channels.ts";
import { nameOr, wasReported, writeStderrLine } from "./stderr-lines.ts";

/** A check of one request; `req` is the request as its framework knows it. */
interface Check {
  readonly name: string;
  readonly req: object;
}

// The error published last: an outer check must not publish an inner check's error again.
const published: RequestFact<Published> = createRequestFact();

interface Published {
  readonly name: string;
  readonly error: Error;
  readonly verdict: Verdict;
}

/** What a check or an adapter tells of its decision; {@link Steps} does it for several checks. */
export const verdicts = {
  note: noteVerdict,
  start: startVerdict,
  publish: publishVerdict,
  refusedWith,
  writeUnreported: writeUnreportedRefusal,
};

/**
 * Publishes a verdict on `countersign:guard` for each check that an adapter composes: begin(name) before each, end() after the
 * last, `throw steps.refused(thrown)` for a throw. No closure and no promise for each check.
 */
export class Steps implements Check {
  name = "";
  readonly req: object;
  #startedAt = 0;

  constructor(req: object) {
    this.req = req;
  }

  begin(name: string): void {
    if (this.name !== "") publishVerdict(this, this.#startedAt, undefined);
    this.name = name;
    this.#startedAt = startVerdict();
  }

  /** Begins another check in the place of the present one, which has not decided yet. */
  instead(name: string): void {
    this.name = name;
    this.#startedAt = startVerdict();
  }

  end(): void {
    publishVerdict(this, this.#startedAt, undefined);
  }

  /** The present check has thrown this; returns the error to throw. */
  refused(thrown: unknown): Error {
    const error = refusedWith(this.name, thrown);
    publishVerdict(this, this.#startedAt, error);
    return error;
  }
}

/** The start time for {@link publishVerdict}; 0 without subscribers. */
function startVerdict(): number {
  return guardChannel.hasSubscribers ? performance.now() : 0;
}

/** The error to hand on for a throw. A value that is no Error, such as "route", would skip the refusal. */
function refusedWith(name: string, thrown: unknown): Error {
  return isError(thrown) ? thrown : new Error(`${name} threw a value that is no Error`, { cause: thrown });
}

const passed = { status: undefined, code: undefined };

/** Publishes a check's verdict: a pass without `error`. False for an error that an inner check has published already. */
function publishVerdict({ name, req }: Check, startedAt: number, error: Error | undefined): boolean {
  if (error === undefined && startedAt === 0) return true;
  if (error !== undefined && published.get(req)?.error === error) return false;
  const durationMs = startedAt === 0 ? undefined : performance.now() - startedAt;
  const verdict = recordOf({ name, req }, durationMs, error);
  if (error !== undefined) published.set(req, { name, error, verdict });
  // No assignment: it must not be enumerable, and the error may be frozen.
  if (isGuardError(error)) Reflect.defineProperty(error, "verdict", { value: verdict, configurable: true });
  if (durationMs !== undefined) guardChannel.publish({ ...verdict, durationMs, req, error });
  return true;
}

const facts: RequestFact<readonly VerdictFacts[]> = createRequestFact();
const storeTimes: RequestFact<number> = createRequestFact();

/** Adds facts to this and later verdicts of a request; the last value of a member counts. Members may be getters, read at the verdict. */
function noteVerdict(req: object, noted: VerdictFacts): void {
  const known = facts.get(req);
  facts.set(req, known === undefined ? [noted] : [noted, ...known]);
}

function factOf<Name extends keyof VerdictFacts>(
  noted: readonly VerdictFacts[],
  name: Name,
): VerdictFacts[Name] {
  return noted.find((one) => name in one)?.[name];
}

/** Adds to the present check's wait for stores, in milliseconds. Ask `guardChannel.hasSubscribers` first. */
export function noteStoreTime(req: object, durationMs: number): void {
  storeTimes.set(req, (storeTimes.get(req) ?? 0) + durationMs);
}

const longestText = 256;
const maxComponents = 32;

function recordOf({ name, req }: Check, durationMs: number | undefined, error: Error | undefined): Verdict {
  const { status, code } = error === undefined ? passed : verdictOf(error);
  const noted = facts.get(req) ?? [];
  const storeMs = storeTimes.get(req);
  if (storeMs !== undefined) storeTimes.delete(req);
  return {
    id: randomUUID(),
    guard: name,
    outcome: status === undefined ? "pass" : status < 500 ? "reject" : "error",
    code,
    status,
    durationMs,
    storeMs,
    label: escaped(factOf(noted, "label")),
    keyid: escaped(factOf(noted, "keyid")),
    subject: escaped(factOf(noted, "subject")),
    created: factOf(noted, "created"),
    ageSeconds: factOf(noted, "ageSeconds"),
    components: factOf(noted, "components")
      ?.slice(0, maxComponents)
      .map((component) => escapeForLog(component)),
    idempotencyKey: escaped(factOf(noted, "idempotencyKey")),
  };
}

function escaped(text: string | undefined): string | undefined {
  return text === undefined ? undefined : escapeForLog(text, longestText);
}

/** The id of a refusal's verdict, for its answer: a caller who quotes it leads to the log. */
export function quoteVerdictId(error: GuardError): string | undefined {
  const id = error.verdict?.id;
  if (error.verdict !== undefined) quoted.add(error.verdict);
  return id;
}

// The log must show each id that a caller may quote.
const quoted = new WeakSet<Verdict>();

/**
 * Writes a refusal on stderr unless a `countersign:guard` subscriber or an `onReject` got it. For adapters, after the answer.
 * Omits the target: a webhook's path is a secret.
 */
function writeUnreportedRefusal({ name, req }: Check, method: unknown, error: Error): void {
  if (guardChannel.hasSubscribers || wasReported(req)) return;
  const { status, code } = verdictOf(error);
  const what = `refused a ${nameOr(method, "request")} with ${status}`;
  const last = published.get(req);
  const publisher = last?.error === error ? last : undefined;
  const verdict = publisher?.verdict ?? (isGuardError(error) ? error.verdict : undefined);
  const known = verdict === undefined ? undefined : knownOf(verdict);
  writeStderrLine({ guard: publisher?.name ?? name, code, what, error, known });
}

/** What a line adds to its error; undefined for nothing. The texts are escaped already. */
function knownOf(verdict: Verdict): string | undefined {
  const { id, keyid, label, subject, ageSeconds, idempotencyKey } = verdict;
  const parts = [
    keyid === undefined ? "" : `keyid "${keyid}"`,
    label === undefined ? "" : `label "${label}"`,
    subject === undefined ? "" : `subject "${subject}"`,
    ageSeconds === undefined ? "" : `created ${agoOf(ageSeconds)}`,
    idempotencyKey === undefined ? "" : `key "${idempotencyKey}"`,
    quoted.has(verdict) ? `verdict ${id}` : "",
  ].filter((part) => part !== "");
  return parts.length === 0 ? undefined : parts.join(", ");
}

function agoOf(ageSeconds: number): string {
  const seconds = Math.round(Math.abs(ageSeconds) * 10) / 10;
  return ageSeconds < 0 ? `${seconds} s ahead of this clock` : `${seconds} s ago`;
}

function verdictOf(error: unknown): { readonly status: number; readonly code: string } {
  return isGuardError(error) ? error : { status: 500, code: "unexpected-error" };
}
