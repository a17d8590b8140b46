import { isUtf8 } from "node:buffer";
import { parseSignatureInput } from "@countersign/http-message-signatures";
import { type Verdict } from "@countersign/core";
import { fieldLines } from "@countersign/core/door";
import type { Masker } from "./loopback/index.ts";
import { wholeBody } from "./explain-request.ts";
import { isCredentialName, notShown } from "./secrets.ts";
import type { RecordedRequest } from "./recorded-request.ts";

/** A line of the list. */
export interface RequestSummary {
  readonly id: number;
  readonly at: number;
  readonly method: string;
  readonly target: string;
  readonly outcome: Verdict["outcome"];
  /** The status of the answer; undefined until there is one, and where node:http does not send it. */
  readonly status: number | undefined;
  /** That refused. */
  readonly guard: string | undefined;
  readonly code: string | undefined;
  readonly durationMs: number | undefined;
  /** How many have decided. */
  readonly guards: number;
  readonly keyid: string | undefined;
  readonly idempotencyKey: string | undefined;
}

/** {@link RequestSummary} of a request, without the secrets that it names itself. */
export function summaryOf(record: RecordedRequest, mask: Masker): RequestSummary {
  const { id, at, method, target, outcome, status, durationMs, verdicts } = record;
  const refused = verdicts.find((verdict) => verdict.outcome === outcome && outcome !== "pass");
  return mask({
    id,
    at,
    method,
    target,
    outcome,
    status,
    guard: refused?.guard,
    code: refused?.code,
    durationMs,
    guards: verdicts.length,
    keyid: lastOf(verdicts, "keyid"),
    idempotencyKey: lastOf(verdicts, "idempotencyKey"),
  });
}

function lastOf(
  verdicts: readonly Verdict[],
  name: "idempotencyKey" | "keyid" | "label",
): string | undefined {
  return verdicts.flatMap((verdict) => verdict[name] ?? []).at(-1);
}

/** Header lines, without credentials. */
export function shownHeaders(
  rawHeaders: readonly string[],
): readonly (readonly [name: string, value: string])[] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, index) => {
    const [name = "", value = ""] = rawHeaders.slice(index * 2, index * 2 + 2);
    return [name, isCredentialName(name) ? notShown : value] as const;
  });
}

/** The bytes of a body. */
export interface ShownBody {
  readonly state: "empty" | "not-read" | "read";
  readonly bytes: number;
  readonly isCut: boolean;
  readonly text?: string;
  readonly base64?: string;
}

/**
 * The bytes as text where they are UTF-8, else in base64, in which no secret would be found: they are masked before, and cut behind
 * that.
 */
export function shownBody(record: RecordedRequest, limitBytes: number, mask: Masker): ShownBody {
  const { body, bodyBytes: bytes } = record;
  if (body === undefined) {
    return { state: wholeBody(record) === undefined ? "not-read" : "empty", bytes: 0, isCut: false };
  }
  if (bytes === 0) return { state: "empty", bytes, isCut: false };
  const isCut = bytes > limitBytes;
  const whole = isCut ? untilCharacter(body) : body;
  if (isUtf8(whole)) {
    const text = mask(whole.toString("utf8"));
    return { state: "read", bytes, isCut, text: isCut ? cutText(text, limitBytes) : text };
  }
  const masked = Buffer.from(mask(body.toString("latin1")), "latin1");
  const shown = isCut ? masked.subarray(0, limitBytes) : masked;
  return { state: "read", bytes, isCut, base64: shown.toString("base64") };
}

function cutText(text: string, limitBytes: number): string {
  return untilCharacter(Buffer.from(text, "utf8").subarray(0, limitBytes)).toString("utf8");
}

/** Without the beginning of a character that was cut. */
function untilCharacter(bytes: Buffer): Buffer {
  for (let dropped = 0; dropped < 4 && dropped < bytes.length; dropped += 1) {
    const rest = bytes.subarray(0, bytes.length - dropped);
    if (isUtf8(rest)) return rest;
  }
  return bytes;
}

/** The use of a nonce that was seen here. */
export interface SeenNonce {
  readonly nonce: string;
  readonly keyid: string | undefined;
  readonly at: number;
  readonly outcome: "fresh" | "replayed";
  readonly requestId: number;
}

const maxNonce = 256;

/** The nonce of the signature of a request. */
export function nonceOf({ rawHeaders, verdicts }: RecordedRequest): string | undefined {
  const label = lastOf(verdicts, "label");
  try {
    const inputs = parseSignatureInput(fieldLines({ rawHeaders }, "signature-input").join(", "));
    const input = label === undefined ? [...inputs.values()][0] : inputs.get(label);
    const nonce = input?.parameters.get("nonce");
    return nonce?.type === "string" ? nonce.value.slice(0, maxNonce) : undefined;
  } catch {
    return undefined;
  }
}

/** What became of its nonce; undefined where the check has not claimed it. */
export function nonceUseOf(record: RecordedRequest): SeenNonce | undefined {
  const verdict = record.verdicts.find(({ guard }) => guard === "httpSignatureVerify");
  const isReplay = verdict?.code === "nonce-replayed";
  if (verdict === undefined || (verdict.outcome !== "pass" && !isReplay)) return undefined;
  const nonce = nonceOf(record);
  if (nonce === undefined) return undefined;
  const { keyid, at } = verdict;
  return { nonce, keyid, at, outcome: isReplay ? "replayed" : "fresh", requestId: record.id };
}
