import { type ReceivedRequest } from "@countersign/core";
import { fieldLines, type HeaderLines } from "@countersign/core/internal";
import {
  createSignatureBase,
  parseSignatureInput,
  type RequestMessage,
  type SignatureInput,
} from "@countersign/http-message-signatures";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/internal";
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import type { KnownKeys, OwnOptions } from "./options.ts";

export interface SignatureContext {
  readonly request: ReceivedRequest;
  /** Undefined where it is not known. */
  readonly body: Uint8Array | undefined;
  readonly own: Omit<OwnOptions, "keys"> & { readonly keys: KnownKeys };
  readonly check: HttpSignatureVerifyOptions;
  readonly code: string | undefined;
  /** That of the checked signature; undefined if it cannot be read. */
  readonly input: SignatureInput | undefined;
}

export interface LabelledSignature {
  readonly label: string;
  readonly input: SignatureInput;
  readonly signature: Uint8Array;
  readonly others: ReadonlyMap<string, Uint8Array>;
}

/** The checked signature: that of the option `label`, else the first whose key is known, else the first. */
export function signatureOf({
  request,
  own,
  check,
}: Pick<SignatureContext, "check" | "own" | "request">): LabelledSignature | undefined {
  try {
    const inputs = inputsOf(request);
    const signatures = parseByteSequenceDictionary(fieldLines(request, "signature").join(", "), "Signature");
    const labels = [...inputs.keys()].filter(
      (label) => signatures.has(label) && (check.label === undefined || check.label === label),
    );
    const known = labels.find((label) => own.keys.has(textOf(inputs.get(label), "keyid") ?? ""));
    const label = known ?? labels[0] ?? "";
    const input = inputs.get(label);
    const signature = signatures.get(label);
    if (input === undefined || signature === undefined) return undefined;
    return { label, input, signature, others: new Map([...signatures].filter(([other]) => other !== label)) };
  } catch {
    return undefined;
  }
}

function inputsOf(request: HeaderLines): ReadonlyMap<string, SignatureInput> {
  return parseSignatureInput(fieldLines(request, "signature-input").join(", "));
}

const maxKeyids = 10;

/** The keyids of a request, unauthenticated. */
export function keyidsOf(request: HeaderLines): readonly string[] {
  try {
    const keyids = [...inputsOf(request).values()].flatMap((input) => textOf(input, "keyid") ?? []);
    return [...new Set(keyids)].slice(0, maxKeyids);
  } catch {
    return [];
  }
}

export function textOf(input: SignatureInput | undefined, name: string): string | undefined {
  const item = input?.parameters.get(name);
  return item?.type === "string" ? item.value : undefined;
}

export function numberOf(input: SignatureInput | undefined, name: string): number | undefined {
  const item = input?.parameters.get(name);
  return item?.type === "integer" ? item.value : undefined;
}

export function messageOf({ request, check }: SignatureContext): RequestMessage {
  const { method, target, rawHeaders, scheme } = request;
  const { pathPrefix = "", origin } = check;
  const url = origin === undefined ? undefined : new URL(origin);
  return {
    method,
    target: pathPrefix + target,
    rawHeaders,
    scheme: url === undefined ? scheme : url.protocol === "http:" ? "http" : "https",
    authority: url?.host,
  };
}

/** Undefined if a component cannot be computed. */
export function baseOfMessage(context: SignatureContext, input: SignatureInput): string | undefined {
  try {
    return createSignatureBase(messageOf(context), input, context.check.fieldTypes);
  } catch {
    return undefined;
  }
}
