import { setImmediate as nextTurn } from "node:timers/promises";
import { type GuardEvent } from "@countersign/core";
import {
  listen,
  option,
  publishFailure,
  splitOptions,
  systemClock,
  type OptionTable,
} from "@countersign/core/door";
import { capturedRequest, type ExplainedRequest } from "./captured-request.ts";
import { explainSignature, type SignatureExplanation } from "./explain-signature.ts";
import { readExplainOptions, type ExplainSignatureOptions } from "./options.ts";

/** Options of {@link signatureExplainer}: the check's own, as for {@link explainSignature}, and these. */
export interface SignatureExplainerOptions extends Omit<ExplainSignatureOptions, "signerBase"> {
  /** Gets each explanation, for a log of operators. Never put it into an answer. */
  readonly write: (explained: SignatureExplanation) => void;
  /** Most refusals to explain in a minute; others are skipped. Default 6. */
  readonly perMinute?: number | undefined;
  /** Explain also with NODE_ENV `production`. Default false. */
  readonly allowInProduction?: boolean | undefined;
}

/** A running {@link signatureExplainer}. */
export interface SignatureExplainer {
  /** False in production, unless it is allowed there. */
  readonly isActive: boolean;
  /** Explanations under way are still written. */
  close(): void;
}

export const explainerTable = {
  write: option.call<SignatureExplainerOptions["write"]>(),
  perMinute: option.integer({ min: 1, max: 600, fallback: 6 }),
  allowInProduction: option.boolean(false),
} satisfies OptionTable<
  Pick<SignatureExplainerOptions, "allowInProduction" | "perMinute" | "write">,
  unknown
>;

const owner = "signatureExplainer";
const minuteMs = 60_000;

// Each waiting explanation keeps its request.
const mostWaiting = 20;
const dropped = `not explained: ${mostWaiting} explanations are waiting`;
let waiting = 0;

/** Runs after the answer's turn of the event loop; undefined if too many wait, counting all explainers of the process. */
async function explainWaiting(
  request: ExplainedRequest,
  options: ExplainSignatureOptions,
): Promise<SignatureExplanation | undefined> {
  if (waiting >= mostWaiting) return undefined;
  waiting += 1;
  try {
    await nextTurn();
    return await explainSignature(request, options);
  } finally {
    waiting -= 1;
  }
}

/**
 * Explains the signatures that httpSignatureVerify refuses at any door, after the answer, one at a time, at most `perMinute`. If twenty are
 * waiting, the next is dropped with a `countersign:notice`. Throws a TypeError on a bad option.
 */
export function signatureExplainer(options: SignatureExplainerOptions): SignatureExplainer {
  const [{ write, perMinute, allowInProduction }, rest] = splitOptions(owner, explainerTable, options);
  const { clock = systemClock } = readExplainOptions(owner, rest).check(undefined);
  if (!isAllowed(allowInProduction)) return { isActive: false, close: () => undefined };
  const taken: number[] = [];
  const onVerdict = async (event: GuardEvent): Promise<void> => {
    try {
      const request = refusedRequest(event);
      const at = clock();
      while (taken.length > 0 && !(at - (taken[0] ?? 0) < minuteMs)) taken.shift();
      if (request === undefined || taken.length >= perMinute) return;
      taken.push(at);
      const explained = await explainWaiting(request, { ...rest, clock: () => at });
      if (explained !== undefined) write(explained);
      else publishFailure({ guard: owner, code: "explanation-dropped", message: dropped });
    } catch (error) {
      const message = "an explanation has failed";
      publishFailure({ guard: owner, code: "unexpected-error", message, error });
    }
  };
  return { isActive: true, close: listen(owner, { verdict: (event) => void onVerdict(event) }) };
}

const refusalTable = { allowInProduction: explainerTable.allowInProduction };

/**
 * Makes the option `explain` of a log sink such as pinoLog: the first sentence of {@link explainSignature} for a signature that
 * httpSignatureVerify has refused, else undefined. The sink bounds how often it asks; past twenty waiting it says so.
 */
export function refusalExplainer(
  options: Omit<SignatureExplainerOptions, "perMinute" | "write">,
): (event: GuardEvent) => Promise<string | undefined> {
  const [{ allowInProduction }, rest] = splitOptions("refusalExplainer", refusalTable, options);
  readExplainOptions("refusalExplainer", rest);
  const isActive = isAllowed(allowInProduction);
  return async (event) => {
    const request = isActive ? refusedRequest(event) : undefined;
    if (request === undefined) return undefined;
    return (await explainWaiting(request, rest))?.sentence ?? dropped;
  };
}

// An explanation says what would have been right: production logs leave it out unless the platform allows it.
function isAllowed(allowInProduction: boolean): boolean {
  return process.env["NODE_ENV"] !== "production" || allowInProduction;
}

// Not a replay: its signature is right.
const unexplained: ReadonlySet<string | undefined> = new Set(["nonce-replayed", "request-aborted"]);

function refusedRequest({ guard, outcome, code, req }: GuardEvent): ExplainedRequest | undefined {
  const isRefused = guard === "httpSignatureVerify" && outcome === "reject" && !unexplained.has(code);
  return isRefused ? capturedRequest(req) : undefined;
}
