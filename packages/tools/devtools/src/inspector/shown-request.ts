import { isUtf8 } from "node:buffer";
import { parseSignatureInput } from "@countersign/http-message-signatures";
import { type Verdict } from "@countersign/core";
import { fieldLines } from "@countersign/core/internal";
import { answerLimitBytes } from "./answer-body.ts";
import type { Masker } from "../loopback/masking.ts";
import { wholeBody } from "./explain-request.ts";
import { isCredentialName, linesOf, notShown } from "./secrets.ts";
import type { RecordedRequest } from "./recorded-request.ts";

/** Masked. `status` is undefined until node:http has sent one. */
export function summaryOf(record: RecordedRequest, mask: Masker) {
  const { id, at, method, target, outcome, status, durationMs, verdicts, idempotencyKey, events, errors } =
    record;
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
    idempotencyKey,
    events,
    threw: errors.length > 0,
  });
}

/** Of an attempt in the row of its newest. */
export function attemptOf({ id, at, outcome, status, verdicts, durationMs }: RecordedRequest) {
  const code = verdicts.find((verdict) => verdict.outcome === outcome && outcome !== "pass")?.code;
  return { id, at, outcome, status, code, durationMs };
}

function lastOf(verdicts: readonly Verdict[], name: "keyid" | "label"): string | undefined {
  return verdicts.flatMap((verdict) => verdict[name] ?? []).at(-1);
}

export function shownHeaders(rawHeaders: readonly string[]): readonly (readonly string[])[] {
  return linesOf(rawHeaders).map(([name, value]) => [name, isCredentialName(name) ? notShown : value]);
}

export function shownBody(record: RecordedRequest, limitBytes: number, mask: Masker): object {
  const { body, bodyBytes: bytes } = record;
  if (body !== undefined && bytes > 0) return shownBytes({ body, bytes }, limitBytes, mask);
  return { state: wholeBody(record) === undefined ? "not-read" : "empty", bytes, isCut: false };
}

export function shownAnswer({ answer, method }: RecordedRequest, mask: Masker): object {
  if (answer === undefined) return { state: "not-known" };
  if (answer === "encoded") return { state: "encoded" };
  if (answer.bytes === 0 || method === "HEAD") return { state: "empty" };
  return shownBytes(answer, answerLimitBytes, mask);
}

/** Text if it is UTF-8, else base64. Masked before it is cut or encoded: no secret is found in base64. */
function shownBytes({ body, bytes }: Bytes, limitBytes: number, mask: Masker): object {
  const isCut = bytes > limitBytes;
  const whole = bytes > body.length ? untilCharacter(body) : body;
  if (isUtf8(whole)) {
    const text = mask(whole.toString("utf8"));
    return { state: "read", bytes, isCut, text: isCut ? cutText(text, limitBytes) : text };
  }
  const masked = Buffer.from(mask(body.toString("latin1")), "latin1");
  const base64 = (isCut ? masked.subarray(0, limitBytes) : masked).toString("base64");
  return { state: "read", bytes, isCut, base64 };
}

interface Bytes {
  /** The first of them. */
  readonly body: Buffer;
  readonly bytes: number;
}

function cutText(text: string, limitBytes: number): string {
  return untilCharacter(Buffer.from(text, "utf8").subarray(0, limitBytes)).toString("utf8");
}

// Drops a character that the cut has split.
function untilCharacter(bytes: Buffer): Buffer {
  for (let dropped = 0; dropped < 4 && dropped < bytes.length; dropped += 1) {
    const rest = bytes.subarray(0, bytes.length - dropped);
    if (isUtf8(rest)) return rest;
  }
  return bytes;
}

const maxNonce = 256;

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
