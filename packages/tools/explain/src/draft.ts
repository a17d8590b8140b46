import { isSignatureOf, type VerificationKey } from "@countersign/http-message-signatures";

/** One line of a signature base: a component identifier and its value. */
export interface BaseLine {
  readonly identifier: string;
  readonly value: string;
  /** What stands between the two, where it is not what the draft has there. */
  readonly colon?: string | undefined;
}

/** How a signer may have made its signature: what it put together, and what it did with that. */
export interface Draft {
  readonly lines: readonly BaseLine[];
  /** The last line; undefined where a signer leaves it out. */
  readonly params: BaseLine | undefined;
  readonly colon: string;
  readonly lineEnd: string;
  readonly head: string;
  readonly tail: string;
  /** What is signed of the base; by default the base itself. */
  readonly finish: (base: Buffer) => Buffer;
  readonly signature: Uint8Array;
  readonly key: VerificationKey;
  /** Whether the signature is one of these bytes. */
  readonly verify: (key: VerificationKey, data: Uint8Array, signature: Uint8Array) => boolean;
}

/** The draft of a signer that does everything right. */
export function rightDraft(base: string, key: VerificationKey, signature: Uint8Array): Draft {
  const lines = base.split("\n").map(readLine);
  return {
    lines: lines.slice(0, -1),
    params: lines.at(-1),
    colon: ": ",
    lineEnd: "\n",
    head: "",
    tail: "",
    finish: (bytes) => bytes,
    signature,
    key,
    verify: isSignatureOf,
  };
}

// An identifier holds `": "` nowhere but at its end: its quotes are escaped.
function readLine(line: string): BaseLine {
  const end = /^"(?:[^"\\]|\\.)*"(?:;[^"=;: ]+(?:="(?:[^"\\]|\\.)*")?)*/.exec(line)?.[0].length ?? 0;
  return { identifier: line.slice(0, end), value: line.slice(end + 2) };
}

/** The base that a draft stands for. */
function baseOf({ lines, params, colon, lineEnd, head, tail }: Draft): string {
  const all = params === undefined ? lines : [...lines, params];
  return head + all.map((line) => line.identifier + (line.colon ?? colon) + line.value).join(lineEnd) + tail;
}

/** The bytes that a draft says were signed. */
export function signedBytes(draft: Draft): Buffer {
  return draft.finish(Buffer.from(baseOf(draft), "utf8"));
}

/** One mistake that signers make. */
export interface NearMiss {
  /** Stable identifier in kebab-case. */
  readonly what: string;
  /** What the signer has to change, beginning with a verb. */
  readonly sentence: string;
  /** Mistakes of one group are not looked for together. */
  readonly group: string;
  /** Whether it is so usual that it is looked for together with another one. */
  readonly isUsual: boolean;
  readonly apply: (draft: Draft) => Draft;
}
