import { expect, test } from "@jest/globals";
import { verify, type RequestMessage } from "@countersign/http-message-signatures";
import {
  sampleCovered,
  sampleHeaders,
  signByHand,
  signedRequest,
  strict,
  verdictOf,
  type Draft,
} from "./hand-signer.ts";

export type Make = () => RequestMessage;

/** A good request as text; the hostile ones differ from it in one thing. */
export const good: ReturnType<typeof signByHand> = signByHand();

export function refuses(rows: readonly (readonly [title: string, code: string, make: Make])[]): void {
  test.each(rows)("refuses %s: %s", (_title, code, make) => {
    expect(verdictOf(() => verify(make(), strict))).toBe(code);
  });
}

export function accepts(rows: readonly (readonly [title: string, make: Make])[]): void {
  test.each(rows)("accepts %s", (_title, make) => {
    expect(verdictOf(() => verify(make(), strict))).toBe("accepted");
  });
}

/** The sample request with these two fields; undefined leaves one out. */
export function withFields(input: string | undefined, signature: string | undefined): RequestMessage {
  return {
    method: "POST",
    target: "/api/v1/transaction",
    rawHeaders: [
      ...sampleHeaders,
      ...(input === undefined ? [] : ["Signature-Input", input]),
      ...(signature === undefined ? [] : ["Signature", signature]),
    ],
  };
}

export const withSignature = (change: (signature: string) => string): RequestMessage =>
  withFields(good.input, change(good.signature));

/** Rightly signed, with other parameters. */
export const withParameters = (parameters: Draft["parameters"]): RequestMessage =>
  signedRequest({ parameters });

/** Rightly signed, with further covered components. */
export const withCovered = (...covered: Draft["covered"]): RequestMessage =>
  signedRequest({ covered: [...sampleCovered, ...covered] });

/** Rightly signed over `path`, sent to `target`. */
export const withTarget = (target: string, path: string = target): RequestMessage =>
  signedRequest({
    target,
    covered: sampleCovered.map(([identifier, value]) => [
      identifier,
      identifier === '"@path"' ? path : value,
    ]),
  });

/** Rightly signed over the value of X-Note, sent with these lines of it. */
export const withNote = (value: string, ...lines: string[]): RequestMessage =>
  signedRequest({
    headers: [...sampleHeaders, ...lines.flatMap((line) => ["X-Note", line])],
    covered: [...sampleCovered, ['"x-note"', value]],
  });

/** Rightly signed, with its query. */
export function signedWithQuery(): RequestMessage {
  const target = "/api/v1/transaction?to=b";
  return signedRequest({ target, covered: [...sampleCovered, ['"@query"', "?to=b"]] });
}
