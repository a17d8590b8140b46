import { AsyncLocalStorage } from "node:async_hooks";
import { channel } from "node:diagnostics_channel";
import {
  createRequestFact,
  type GuardEvent,
  type PublishedEvents,
  type RequestFact,
} from "@countersign/core";
import { escapeForLog, listen, warnOfError } from "@countersign/core/internal";
import { ServerResponse } from "node:http";
import { AnswerBody } from "./answer-body.ts";
import { KeptRequests } from "./kept-requests.ts";
import type { ChangeStream } from "../loopback/change-stream.ts";
import type { ResolvedInspectorOptions } from "./options.ts";
import {
  addError,
  addEvent,
  addLife,
  addVerdict,
  captureBody,
  recordRequest,
  type LifeEntry,
  type RecordedRequest,
  type SeenEvent,
} from "./recorded-request.ts";

export interface SeenKey {
  /** Escaped and cut: of a refused signature it is unauthenticated. */
  readonly keyid: string;
  subject: string | undefined;
  /** Unix seconds. */
  notAfter: number | undefined;
  uses: number;
  /** Milliseconds since 1970. */
  lastUsedAt: number | undefined;
  refused: number;
}

export type ChangeKind = "keys" | "stores" | "work";

export interface RecorderInit extends Pick<ResolvedInspectorOptions, "bodyLimitBytes" | "kept"> {
  readonly changed: ChangeStream<ChangeKind>["changed"];
}

/** What node:http has received and not yet answered. */
interface Present {
  id: number | undefined;
  readonly before: LifeEntry[];
  readonly answer: AnswerBody | undefined;
  isAnswered: boolean;
}

const factoryName = "inspector";
const maxGuards = 100;
const maxKeys = 200;
const maxBefore = 50;

/** Records what the channels publish. On the request path: explains nothing, keeps no request, never throws. */
export class Recorder {
  readonly requests: KeptRequests;
  readonly guards: Set<string> = new Set();
  readonly keys: Map<string, SeenKey> = new Map();
  readonly #init: RecorderInit;
  readonly #numbers: RequestFact<number> = createRequestFact();
  // Store calls and events name no request; their async context does if node:http received it.
  readonly #present = new AsyncLocalStorage<Present>();
  readonly #received = new WeakMap<object, Present>();
  // An adapter and a check may both tell of one error.
  readonly #told = new WeakMap<object, number>();
  readonly #ends: readonly (() => void)[];
  #count = 0;

  constructor(init: RecorderInit) {
    this.#init = init;
    this.requests = new KeptRequests(init.kept);
    this.#ends = [
      listen(factoryName, {
        verdict: (event) => this.#verdict(event),
        keyUse: (event) => this.#keyUse(event),
        claim: ({ key, req, ...trace }) => this.#add("claim", { text: `key "${key}"`, ...trace }, req),
        wait: ({ key, ...trace }) => this.#add("wait", { text: `key "${key}"`, ...trace }),
        settled: ({ key, req, outcome, ownedMs }) =>
          this.#add("settled", { text: `key "${key}"`, outcome, durationMs: ownedMs }, req),
        leaseLost: ({ key, req, code }) =>
          this.#add("lease-lost", { text: `key "${key}"`, outcome: code }, req),
        store: ({ engine, step, ...trace }) => this.#add("store", { text: `${engine} ${step}`, ...trace }),
        event: ({ type, eventId, webhookId, ...trace }) => {
          this.#add("event", { text: `${type} ${eventId}`, ...trace });
          this.#event({ type, eventId, webhookId });
        },
        notice: ({ guard, code, message, req, error }) => {
          this.#add("notice", { text: `${guard}: ${message}`, outcome: code }, req);
          this.#threw(guard, error, req);
        },
        thrown: ({ error, req }) => this.#threw("handler", error, req),
        task: () => this.#init.changed({ kind: "work" }),
      }),
      subscribe("http.server.request.start", (message) => this.#began(message)),
      subscribe("http.server.response.finish", (message) => this.#answered(message)),
      // Fastify's own: its adapter does not see what a handler behind a hook throws.
      subscribe("tracing:fastify.request.handler:error", (message) => {
        const { error, request }: Readonly<Record<string, unknown>> = Object(message);
        this.#threw("handler", error, typeof request === "object" && request !== null ? request : undefined);
      }),
    ];
  }

  close(): void {
    for (const end of this.#ends) end();
    this.#present.disable();
  }

  #verdict(event: GuardEvent): void {
    const at = Date.now();
    const record =
      this.#numberOf(event.req) === undefined ? this.#begin(at, event) : this.#recordOf(event.req);
    if (record === undefined) return;
    const added = addVerdict(record, at, event);
    if (added !== undefined) this.requests.nameVerdict(added.id, record);
    this.#addError(record, event.guard, event.error);
    captureBody(record, event.req, this.#init.bodyLimitBytes);
    if (this.guards.size < maxGuards) this.guards.add(event.guard);
    if (event.guard === "httpSignatureVerify" && event.outcome === "reject") this.#keyRefused(event.keyid);
    this.#init.changed({ ids: [record.id] });
  }

  #begin(at: number, event: GuardEvent): RecordedRequest {
    this.#count += 1;
    const record = recordRequest(this.#count, at, event);
    this.#numbers.set(event.req, record.id);
    const present = this.#present.getStore();
    if (present !== undefined) {
      present.id = record.id;
      for (const entry of present.before.splice(0)) addLife(record, entry);
    }
    this.requests.add(record);
    return record;
  }

  // A check sees Fastify's request, node:http the one inside it.
  #numberOf(req: object): number | undefined {
    const raw: unknown = Object(req).raw;
    return (
      this.#numbers.get(req) ?? (typeof raw === "object" && raw !== null ? this.#numbers.get(raw) : undefined)
    );
  }

  /** Without a request, that of the asynchronous context, until its answer has left: a worker may have begun in it. */
  #recordOf(req?: object): RecordedRequest | undefined {
    const present = this.#present.getStore();
    const begun = present?.isAnswered === false ? present.id : undefined;
    const id = req === undefined ? begun : this.#numberOf(req);
    return id === undefined ? undefined : this.requests.get(id);
  }

  #add(what: LifeEntry["what"], entry: Omit<LifeEntry, "at" | "what">, req?: object): void {
    const { text, outcome, durationMs } = entry;
    if (what === "settled" || what === "claim") this.#init.changed({ kind: "stores" });
    const life = { at: Date.now(), what, outcome, durationMs, text };
    const present = this.#present.getStore();
    const id = (req === undefined ? undefined : this.#numberOf(req)) ?? present?.id;
    if (id === undefined) {
      // A guard publishes its claim before its own verdict.
      if (present !== undefined && present.before.length < maxBefore) present.before.push(life);
      return;
    }
    const record = this.requests.get(id);
    if (record !== undefined && addLife(record, life)) this.#init.changed({ ids: [id] });
  }

  #event(event: SeenEvent): void {
    const record = this.#recordOf();
    if (record !== undefined) addEvent(record, event);
  }

  #threw(from: string, error: unknown, req: object | undefined): void {
    const record = this.#recordOf(req);
    if (record !== undefined && this.#addError(record, from, error)) this.#init.changed({ ids: [record.id] });
  }

  #addError(record: RecordedRequest, from: string, error: unknown): boolean {
    const subject = typeof error === "object" && error !== null ? error : undefined;
    if (subject !== undefined && this.#told.get(subject) === record.id) return false;
    if (!addError(record, Date.now(), from, error)) return false;
    if (subject !== undefined) this.#told.set(subject, record.id);
    return true;
  }

  #began(message: unknown): void {
    const { request, response }: Readonly<Record<string, unknown>> = Object(message);
    const answer = response instanceof ServerResponse ? new AnswerBody(response) : undefined;
    const present: Present = { id: undefined, before: [], answer, isAnswered: false };
    if (typeof request === "object" && request !== null) this.#received.set(request, present);
    this.#present.enterWith(present);
  }

  #answered(message: unknown): void {
    const { request, response }: Readonly<Record<string, unknown>> = Object(message);
    if (typeof request !== "object" || request === null) return;
    const present = this.#received.get(request);
    if (present !== undefined) present.isAnswered = true;
    // A fetch adapter's request is another object.
    const id = this.#numberOf(request) ?? present?.id;
    const record = id === undefined ? undefined : this.requests.get(id);
    if (record === undefined) return;
    const status: unknown = Object(response).statusCode;
    record.status = typeof status === "number" ? status : undefined;
    // What is compressed cannot be masked.
    const isEncoded = response instanceof ServerResponse && response.hasHeader("content-encoding");
    record.answer = isEncoded ? "encoded" : present?.answer;
    record.durationMs = performance.now() - record.startedAtMs;
    captureBody(record, request, this.#init.bodyLimitBytes);
    this.#init.changed({ ids: [record.id] });
  }

  #keyUse({ keyid, subject, notAfter }: PublishedEvents["keyUse"]): void {
    const key = this.#keyOf(escapeForLog(keyid, 256));
    key.uses += 1;
    key.lastUsedAt = Date.now();
    key.subject = subject === undefined ? undefined : escapeForLog(subject, 256);
    key.notAfter = notAfter;
    this.#init.changed({ kind: "keys" });
  }

  #keyRefused(keyid: string | undefined): void {
    if (keyid === undefined) return;
    this.#keyOf(keyid).refused += 1;
    this.#init.changed({ kind: "keys" });
  }

  #keyOf(keyid: string): SeenKey {
    const known = this.keys.get(keyid);
    if (known !== undefined) return known;
    const times = { subject: undefined, notAfter: undefined, lastUsedAt: undefined };
    const key: SeenKey = { keyid, ...times, uses: 0, refused: 0 };
    if (this.keys.size >= maxKeys) {
      // Invented names push out invented names first.
      const all = [...this.keys.values()];
      this.keys.delete((all.find(({ uses }) => uses === 0) ?? all[0] ?? key).keyid);
    }
    this.keys.set(keyid, key);
    return key;
  }
}

// An error in a subscriber of Node's own channels would end the process.
function subscribe(name: string, handle: (message: unknown) => void): () => void {
  const listener = (message: unknown): void => {
    try {
      handle(message);
    } catch (error) {
      warnOfError(factoryName, "could not record a request", error);
    }
  };
  channel(name).subscribe(listener);
  return () => {
    channel(name).unsubscribe(listener);
  };
}
