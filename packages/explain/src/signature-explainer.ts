import { subscribe, unsubscribe } from "node:diagnostics_channel";
import {
  capturedRawBody,
  guardChannelName,
  option,
  publishFailure,
  splitOptions,
  systemClock,
  type OptionTable,
} from "@countersign/core";
import { receivedRequest, type GuardRequest } from "@countersign/express";
import { explainSignature, type ExplainedRequest, type SignatureExplanation } from "./explain-signature.ts";
import { readExplainOptions, type ExplainSignatureOptions } from "./options.ts";

/** Those of {@link explainSignature}, which are to be the check's own, and these. */
export interface SignatureExplainerOptions extends Omit<ExplainSignatureOptions, "signerBase"> {
  /** Gets each explanation, for a log of operators: an answer to the caller must not hold it. */
  readonly write: (explained: SignatureExplanation) => void;
  /** Refusals that are explained in a minute at most; the others are not looked at. Default 6. */
  readonly perMinute?: number | undefined;
  /** Explain although NODE_ENV is `production`. Default false: there nothing is explained. */
  readonly allowInProduction?: boolean | undefined;
}

/** The explainer at work. */
export interface SignatureExplainer {
  /** False in production, unless it is allowed there. */
  readonly isActive: boolean;
  /** Ends it; what is under way is still written. */
  close(): void;
}

interface Own {
  readonly write: SignatureExplainerOptions["write"];
  readonly perMinute: number;
  readonly allowInProduction: boolean;
}

export const explainerTable: OptionTable<
  Pick<SignatureExplainerOptions, "allowInProduction" | "perMinute" | "write">,
  Own
> = {
  write: option.call(),
  perMinute: option.integer({ min: 1, max: 600, fallback: 6 }),
  allowInProduction: option.boolean(false),
};

const owner = "signatureExplainer";
const minuteMs = 60_000;

/**
 * Explains the signatures that httpSignatureVerify refuses at the Express and Fastify doors, off the request path: behind the answer's
 * turn of the event loop, one at a time, at most `perMinute`. A body that was not read when the signature was refused is taken for
 * empty. Throws a TypeError on a bad option.
 */
export function signatureExplainer(options: SignatureExplainerOptions): SignatureExplainer {
  const [{ write, perMinute, allowInProduction }, rest] = splitOptions(owner, explainerTable, options);
  const { clock = systemClock } = readExplainOptions(owner, rest).check;
  if (process.env["NODE_ENV"] === "production" && !allowInProduction) {
    return { isActive: false, close: () => undefined };
  }
  const taken: number[] = [];
  let last: Promise<void> = Promise.resolve();
  const hear = (message: unknown): void => {
    const request = refusedRequest(message);
    const at = clock();
    while (taken.length > 0 && !(at - (taken[0] ?? 0) < minuteMs)) taken.shift();
    if (request === undefined || taken.length >= perMinute) return;
    taken.push(at);
    const work = async (): Promise<void> => {
      try {
        write(await explainSignature(request, { ...rest, clock: () => at }));
      } catch (error) {
        publishFailure({
          guard: owner,
          code: "unexpected-error",
          message: "an explanation has failed",
          error,
        });
      }
    };
    setImmediate(() => {
      last = last.then(work);
    });
  };
  subscribe(guardChannelName, hear);
  return { isActive: true, close: () => void unsubscribe(guardChannelName, hear) };
}

// Not a replay: its signature is right.
const unexplained: ReadonlySet<unknown> = new Set(["nonce-replayed", "request-aborted"]);

/** What is kept of a request whose signature was refused; undefined of any other event. */
function refusedRequest(message: unknown): ExplainedRequest | undefined {
  const { guard, outcome, code, req } = membersOf(message);
  if (guard !== "httpSignatureVerify" || outcome !== "reject" || unexplained.has(code)) return undefined;
  const native = isNodeRequest(req) ? req : membersOf(req)["raw"];
  if (!isNodeRequest(native)) return undefined;
  try {
    const { method, target, rawHeaders, scheme } = receivedRequest(native);
    return { method, target, rawHeaders: [...rawHeaders], scheme, body: capturedRawBody(native) };
  } catch {
    // Where nobody can say how the client reached the server.
    return undefined;
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null
    ? Object.fromEntries(namesOf.map((name) => [name, Reflect.get(value, name)]))
    : {};
}

const namesOf = ["guard", "outcome", "code", "req", "raw"];

function isNodeRequest(value: unknown): value is GuardRequest {
  return (
    typeof value === "object" &&
    value !== null &&
    "rawHeaders" in value &&
    Array.isArray(value.rawHeaders) &&
    "socket" in value
  );
}
