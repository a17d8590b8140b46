import { createHash } from "node:crypto";
import { isSignatureOf } from "@countersign/http-message-signatures/internal";
import type { RequestMessage, VerificationKey } from "@countersign/http-message-signatures";

export interface BaseLine {
  readonly identifier: string;
  readonly value: string;
}

/** How a signer may have made its signature. */
export interface Draft {
  readonly lines: readonly BaseLine[];
  readonly params: BaseLine | undefined;
  readonly colon: string;
  readonly lineEnd: string;
  readonly tail: string;
  /** Makes the signed bytes from the base. */
  readonly finish: (base: Buffer) => Buffer;
  readonly signature: Uint8Array;
  readonly key: VerificationKey;
  readonly verify: (key: VerificationKey, data: Uint8Array, signature: Uint8Array) => boolean;
}

export function rightDraft(base: string, key: VerificationKey, signature: Uint8Array): Draft {
  const lines = base.split("\n").map(readLine);
  return {
    lines: lines.slice(0, -1),
    params: lines.at(-1),
    colon: ": ",
    lineEnd: "\n",
    tail: "",
    finish: (bytes) => bytes,
    signature,
    key,
    verify: isSignatureOf,
  };
}

// An identifier has `": "` only at its end: its quotes are escaped.
function readLine(line: string): BaseLine {
  const end = /^"(?:[^"\\]|\\.)*"(?:;[^"=;: ]+(?:="(?:[^"\\]|\\.)*")?)*/.exec(line)?.[0].length ?? 0;
  return { identifier: line.slice(0, end), value: line.slice(end + 2) };
}

export function baseOf({ lines, params, colon, lineEnd, tail }: Draft): string {
  const all = params === undefined ? lines : [...lines, params];
  return all.map(({ identifier, value }) => identifier + colon + value).join(lineEnd) + tail;
}

function signedBytes(draft: Draft): Buffer {
  return draft.finish(Buffer.from(baseOf(draft), "utf8"));
}

export function isSigned(draft: Draft): boolean {
  try {
    return draft.verify(draft.key, signedBytes(draft), draft.signature);
  } catch {
    // The algorithm needs a key of another type.
    return false;
  }
}

const idOfWay = new WeakMap<Draft["verify"], number>();
let ways = 0;

/** Equal for two drafts with the same bytes, key, signature and algorithm. */
export function identityOfDraft(draft: Draft): string {
  const way = idOfWay.get(draft.verify) ?? (ways += 1);
  idOfWay.set(draft.verify, way);
  return createHash("sha256")
    .update(`${way} ${draft.key.keyid.length} ${draft.key.keyid} ${draft.signature.length} `)
    .update(draft.signature)
    .update(signedBytes(draft))
    .digest("base64");
}

export interface MismatchContext extends RequestMessage {
  readonly body: Uint8Array | undefined;
  /** The label, and its member of Signature-Input as received. */
  readonly label: string;
  readonly member: string;
  readonly pathPrefixes: readonly string[];
  readonly keys: ReadonlyMap<string, VerificationKey>;
  readonly otherSignatures: ReadonlyMap<string, Uint8Array>;
  readonly right: Draft;
}
