import { explainSignature, signatureExplainer, type SignatureExplainer } from "@countersign/explain";
import type { GuardRequest } from "@countersign/express";

const keys = { "service-1": process.env["SERVICE_PUBLIC_KEY"] ?? "" };

/** A few refusals a minute go to the log of development and staging, with what the signer has to change. */
export function explainRefusals(): SignatureExplainer {
  return signatureExplainer({ keys, write: ({ what, sentence }) => console.warn(what, sentence) });
}

/** `Sign "@method" as "POST": the signature fits with "post", in lower case.` */
export async function whyRefused(req: GuardRequest, body: Uint8Array): Promise<string> {
  const { method = "", url: target = "", rawHeaders } = req;
  const { sentence } = await explainSignature({ method, target, rawHeaders, body }, { keys });
  return sentence;
}
