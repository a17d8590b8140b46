import { setImmediate as nextTurn } from "node:timers/promises";
import { type GuardEvent } from "@countersign/core";
import { option, splitOptions, type OptionTable } from "@countersign/core/internal";
import { capturedRequest, type ExplainedRequest } from "./captured-request.ts";
import { explainSignature } from "./explain-signature.ts";
import { readExplainOptions, type ExplainSignatureOptions } from "./options.ts";

/** Options of {@link refusalExplainer}: the check's own, as for {@link explainSignature}, and this. */
export interface RefusalExplainerOptions extends Omit<ExplainSignatureOptions, "signerBase"> {
  /** Explain also with NODE_ENV `production`. Default false. */
  readonly allowInProduction?: boolean | undefined;
}

export const explainerTable = {
  allowInProduction: option.boolean(false),
} satisfies OptionTable<Pick<RefusalExplainerOptions, "allowInProduction">, unknown>;

// Each waiting explanation keeps its request; all explainers of the process count.
const mostWaiting = 20;
let waiting = 0;

/**
 * Makes the option `explain` of a log sink such as pinoLog: the first sentence of {@link explainSignature} for a signature that
 * httpSignatureVerify has refused, else undefined. The sink bounds how often it asks; past twenty waiting it says so.
 */
export function refusalExplainer(
  options: RefusalExplainerOptions,
): (event: GuardEvent) => Promise<string | undefined> {
  const [{ allowInProduction }, rest] = splitOptions("refusalExplainer", explainerTable, options);
  readExplainOptions("refusalExplainer", rest);
  // An explanation says what would have been right: production logs leave it out unless the platform allows it.
  const isActive = process.env["NODE_ENV"] !== "production" || allowInProduction;
  return async (event) => {
    const request = isActive ? refusedRequest(event) : undefined;
    if (request === undefined) return undefined;
    if (waiting >= mostWaiting) return `not explained: ${mostWaiting} explanations are waiting`;
    waiting += 1;
    try {
      // After the answer's turn of the event loop.
      await nextTurn();
      return (await explainSignature(request, rest)).sentence;
    } finally {
      waiting -= 1;
    }
  };
}

// Not a replay: its signature is right.
const unexplained: ReadonlySet<string | undefined> = new Set(["nonce-replayed", "request-aborted"]);

function refusedRequest({ guard, outcome, code, req }: GuardEvent): ExplainedRequest | undefined {
  const isRefused = guard === "httpSignatureVerify" && outcome === "reject" && !unexplained.has(code);
  return isRefused ? capturedRequest(req) : undefined;
}
