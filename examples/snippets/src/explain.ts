import { explainSignature, refusalExplainer } from "@countersign/cli/explain";
import type { GuardRequest } from "@countersign/express";
import { consoleLog } from "@countersign/observe/log";

const keys = { "service-1": process.env["SERVICE_PUBLIC_KEY"] ?? "" };

/**
 * Refusals go to the log of development and staging, a few a minute with what
 * the signer has to change.
 */
export function logRefusals(): () => void {
  return consoleLog({ explain: refusalExplainer({ keys }) });
}

/**
 * `Sign "@method" as "POST": the signature fits with "post", in lower case.`
 */
export async function whyRefused(
  req: GuardRequest,
  body: Uint8Array,
): Promise<string> {
  const { method = "", url: target = "", rawHeaders } = req;
  const { sentence } = await explainSignature(
    { method, target, rawHeaders, body },
    { keys },
  );
  return sentence;
}
