import { readFileSync } from "node:fs";
import { allCodes } from "@countersign/cli/codes";
import type { ChangeStream } from "../loopback/change-stream.ts";
import type { Masker } from "../loopback/masking.ts";
import { refuseOtherMethods, serviceError, ServiceError } from "../loopback/problem.ts";
import { Router, type Request, type RequestHandler } from "express";
import { claimNow, explainRequest, type ExplainedRequest } from "./explain-request.ts";
import type { KeptRequests } from "./kept-requests.ts";
import type { ResolvedInspectorOptions } from "./options.ts";
import type { ChangeKind, Recorder } from "./recorder.ts";
import type { RecordedRequest } from "./recorded-request.ts";
import { maskerOfRequest } from "./secrets.ts";
import { listedRequests } from "./list-requests.ts";
import { shownErrors } from "./recorded-error.ts";
import { queuesOf, tasksOf, type WantedTasks } from "./work-view.ts";
import { nonceOf, shownAnswer, shownBody, shownHeaders, summaryOf } from "./shown-request.ts";

export interface Shown {
  readonly options: ResolvedInspectorOptions;
  readonly recorder: Recorder;
  readonly mask: Masker;
}

const listedByDefault = 50;
const mostText = 512;

export function inspectorRoutes(shown: Shown, stream: ChangeStream<ChangeKind>): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const explain = explainer(shown);
  const { requests } = shown.recorder;
  const startedAt = Date.now();
  const detail = (record: RecordedRequest): Promise<object> => detailOf(record, shown, explain);
  const answers: Readonly<Record<string, (req: Request) => object | Promise<object>>> = {
    overview: () => overviewOf(shown, startedAt),
    requests: ({ query }) => listOf(shown, query),
    "requests/:id": ({ params }) => detail(requestOf(requests, String(params["id"]))),
    work: () => queuesOf(shown.options.work),
    "work/tasks": ({ query }) => tasksOf(shown.options.work, wantedTasks(query)),
    "verdicts/:uuid": ({ params }) => detail(requestOfVerdict(requests, String(params["uuid"]))),
  };
  const add = (path: string, get: RequestHandler): void => {
    router.route(`/inspector/${path}`).get(get).all(refuseOtherMethods("GET, HEAD"));
  };
  for (const [path, answer] of Object.entries(answers))
    add(path, async (req, res) => void res.json(await answer(req)));
  add("stream", (_req, res) => stream.open(res));
  return router;
}

function overviewOf({ options, recorder }: Shown, startedAt: number): object {
  const { signature, hmac, basicAuth, addresses, kept } = options;
  return {
    version: version(),
    now: Date.now(),
    startedAt,
    kept,
    counts: recorder.requests.counts,
    guards: [...recorder.guards],
    keys: [...recorder.keys.values()],
    hasWork: options.work.size > 0,
    explains: {
      signature: signature !== undefined,
      hmac: hmac !== undefined,
      basicAuth: basicAuth !== undefined,
      addresses: addresses !== undefined,
    },
  };
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return String(Object(manifest).version);
}

function listOf({ recorder, mask }: Shown, { outcome, search, before, limit }: Request["query"]): object {
  const wanted = {
    outcome: oneOf("outcome", outcome, ["pass", "reject", "error"]),
    search: textOf("search", search) ?? "",
    before: numberOf("before", before, Number.MAX_SAFE_INTEGER) ?? Infinity,
    limit: numberOf("limit", limit, 200) ?? listedByDefault,
  };
  return listedRequests(recorder.requests.newest(), wanted, mask);
}

function wantedTasks({ store, queue, state }: Request["query"]): WantedTasks {
  return {
    store: textOf("store", store) ?? "",
    queue: textOf("queue", queue) ?? "",
    state: oneOf("state", state, ["open", "dead", "done"]) ?? "open",
  };
}

type Explain = (record: RecordedRequest) => Promise<ExplainedRequest>;

/** Explains a request again only after another verdict. */
function explainer({ options }: Shown): Explain {
  const made = new WeakMap<
    RecordedRequest,
    { readonly verdicts: number; readonly explained: Promise<ExplainedRequest> }
  >();
  return (record) => {
    const known = made.get(record);
    if (known?.verdicts === record.verdicts.length) return known.explained;
    const explained = explainRequest(record, options);
    made.set(record, { verdicts: record.verdicts.length, explained });
    return explained;
  };
}

async function detailOf(
  record: RecordedRequest,
  { options, mask }: Shown,
  explain: Explain,
): Promise<object> {
  const ofRequest = maskerOfRequest(record);
  const both: Masker = (value) => mask(ofRequest(value));
  const summary = summaryOf(record, both);
  const key = summary.idempotencyKey;
  const { explanations, bases } = await explain(record);
  const { scheme, clientAddress, rawHeaders, verdicts, life, errors } = record;
  return both({
    ...summary,
    scheme,
    clientAddress,
    headers: shownHeaders(rawHeaders),
    body: shownBody(record, options.bodyLimitBytes, both),
    answer: shownAnswer(record, both),
    errors: shownErrors(errors, both),
    verdicts: verdicts.map((verdict) => withMeaning(verdict, verdict.code)),
    life: life.map((entry) => withMeaning(entry, entry.what === "notice" ? entry.outcome : undefined)),
    nonce: nonceOf(record),
    explanations,
    bases,
    claim: key === undefined ? undefined : await claimNow(options.stores, key),
  });
}

/** With what the page of codes says of its code. */
function withMeaning(subject: object, code: string | undefined): object {
  return { ...subject, meaning: code === undefined ? undefined : allCodes().get(code) };
}

function requestOf(requests: KeptRequests, id: string): RecordedRequest {
  const number = /^\d{1,15}$/.test(id) ? Number(id) : 0;
  const newest = requests.newest()[0]?.id ?? 0;
  if (number === 0 || number > newest) throw serviceError("not-found", "no request of this number");
  return keptRequest(requests, number);
}

function requestOfVerdict(requests: KeptRequests, id: string): RecordedRequest {
  const number = requests.numberOf(id.replace(/^urn:uuid:/i, "").toLowerCase());
  if (number === undefined) throw serviceError("not-found", "no verdict of this id was seen here");
  return keptRequest(requests, number);
}

function keptRequest(requests: KeptRequests, number: number): RecordedRequest {
  const record = requests.get(number);
  if (record !== undefined) return record;
  const message = "the request is kept no longer: newer ones have come (option kept)";
  throw new ServiceError("request-not-kept", 404, message);
}

function oneOf<Value extends string>(
  name: string,
  value: unknown,
  values: readonly Value[],
): Value | undefined {
  if (value === undefined) return undefined;
  const found = values.find((known) => known === value);
  if (found !== undefined) return found;
  throw serviceError("invalid-request", `${name} is one of ${values.join(", ")}`);
}

function textOf(name: string, value: unknown): string | undefined {
  if (value === undefined || (typeof value === "string" && value.length <= mostText)) return value;
  throw serviceError("invalid-request", `${name} is a text of at most ${mostText} characters`);
}

function numberOf(name: string, value: unknown, max: number): number | undefined {
  if (value === undefined) return undefined;
  const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : 0;
  if (number >= 1 && number <= max) return number;
  throw serviceError("invalid-request", `${name} is a number from 1 to ${max}`);
}
