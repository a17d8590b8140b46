import { readFileSync } from "node:fs";
import { refuseOtherMethods, ServiceError, type ChangeStream, type Masker } from "./loopback/index.ts";
import { serviceError } from "./loopback/service-error.ts";
import { Router, type RequestHandler } from "express";
import { explainRequest, type ExplainedRequest } from "./explain-request.ts";
import type { ResolvedInspectorOptions } from "./options.ts";
import type { ChangeKind, Recorder } from "./recorder.ts";
import type { RecordedRequest } from "./recorded-request.ts";
import { maskerOfRequest } from "./secrets.ts";
import {
  nonceOf,
  nonceUseOf,
  shownBody,
  shownHeaders,
  summaryOf,
  type RequestSummary,
} from "./shown-request.ts";
import { claimNow } from "./claim-now.ts";

/** What the paths show. */
export interface Shown {
  readonly options: ResolvedInspectorOptions;
  readonly recorder: Recorder;
  /** Masks what the options name. */
  readonly mask: Masker;
}

const listedRequests = 50;
const maxNonces = 200;

/** Every path of the inspector: to be looked at alone. */
export function inspectorRoutes(shown: Shown, stream: ChangeStream<ChangeKind>): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const explain = explainer(shown);
  const { recorder } = shown;
  const startedAt = Date.now();
  addPath(router, "/inspector/overview", (_req, res) => {
    res.json(overviewOf(shown, startedAt));
  });
  addPath(router, "/inspector/requests", (req, res) => {
    res.json(listOf(shown, req.query));
  });
  addPath(router, "/inspector/requests/:id", async (req, res) => {
    res.json(await detailOf(requestOf(recorder, String(req.params["id"])), shown, explain));
  });
  addPath(router, "/inspector/verdicts/:uuid", async (req, res) => {
    res.json(await detailOf(requestOfVerdict(recorder, String(req.params["uuid"])), shown, explain));
  });
  addPath(router, "/inspector/nonces", (_req, res) => {
    res.json({ nonces: noncesOf(recorder) });
  });
  addPath(router, "/inspector/stream", (_req, res) => stream.open(res));
  return router;
}

function addPath(router: Router, path: string, get: RequestHandler): void {
  router.route(path).get(get).all(refuseOtherMethods("GET, HEAD"));
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
    explains: {
      signature: signature !== undefined,
      hmac: hmac !== undefined,
      basicAuth: basicAuth !== undefined,
      addresses: addresses !== undefined,
    },
  };
}

/** The version of this package, which is that of all packages of its release. */
function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return String(Object(manifest).version);
}

type Query = Readonly<Record<string, unknown>>;

function listOf({ recorder, mask }: Shown, { outcome, before, limit }: Query): object {
  const wanted = oneOf("outcome", outcome, ["pass", "reject", "error"]);
  const most = numberOf("limit", limit, 200) ?? listedRequests;
  const first = numberOf("before", before, Number.MAX_SAFE_INTEGER) ?? Infinity;
  const requests: RequestSummary[] = [];
  for (const record of recorder.requests.newest()) {
    if (requests.length >= most) break;
    if (record.id >= first || (wanted !== undefined && record.outcome !== wanted)) continue;
    requests.push(mask(summaryOf(record, maskerOfRequest(record))));
  }
  const { pass, reject, error } = recorder.requests.counts;
  return { requests, total: wanted === undefined ? pass + reject + error : recorder.requests.counts[wanted] };
}

type Explain = (record: RecordedRequest) => Promise<ExplainedRequest>;

/** Explains each request once for as many verdicts as it has. */
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
  const { scheme, clientAddress, rawHeaders, verdicts, life } = record;
  return both({
    ...summary,
    scheme,
    clientAddress,
    headers: shownHeaders(rawHeaders),
    body: shownBody(record, options.bodyLimitBytes, both),
    verdicts,
    life,
    nonce: nonceOf(record),
    explanations,
    bases,
    claim: key === undefined ? undefined : await claimNow(options.stores, key, Date.now()),
  });
}

function requestOf({ requests }: Recorder, id: string): RecordedRequest {
  const number = /^\d{1,15}$/.test(id) ? Number(id) : 0;
  const record = requests.get(number);
  if (record !== undefined) return record;
  const [newest] = requests.newest();
  throw number > 0 && number <= (newest?.id ?? 0)
    ? notKept()
    : serviceError("not-found", "no request of this number");
}

function requestOfVerdict({ requests }: Recorder, id: string): RecordedRequest {
  const uuid = id.replace(/^urn:uuid:/i, "").toLowerCase();
  const record = requests.byVerdict(uuid);
  if (record !== undefined) return record;
  throw requests.isForgotten(uuid)
    ? notKept()
    : serviceError("not-found", "no verdict of this id was seen here");
}

function notKept(): ServiceError {
  return new ServiceError(
    "request-not-kept",
    404,
    "the request is kept no longer: newer ones have come (option kept)",
  );
}

function noncesOf({ requests }: Recorder): readonly object[] {
  const nonces: object[] = [];
  for (const record of requests.newest()) {
    if (nonces.length >= maxNonces) break;
    const use = nonceUseOf(record);
    if (use !== undefined) nonces.push(use);
  }
  return nonces;
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

function numberOf(name: string, value: unknown, max: number): number | undefined {
  if (value === undefined) return undefined;
  const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : 0;
  if (number >= 1 && number <= max) return number;
  throw serviceError("invalid-request", `${name} is a number from 1 to ${max}`);
}
