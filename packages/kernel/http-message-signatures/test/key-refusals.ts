import { expect, test } from "@jest/globals";
import { importVerificationKey, type SignatureAlgorithm } from "@countersign/http-message-signatures";

export type PublicKeyInput = Parameters<typeof importVerificationKey>[1];

/** What is given as a key, with what options, and what the error says. */
export type RefusedKey = readonly [
  title: string,
  input: unknown,
  options: { readonly alg?: SignatureAlgorithm },
  message: RegExp,
];

/** Each is refused with a TypeError of these words, which shows nothing of the `secrets`, nor of their text in hex or base64. */
export function testRefusals(refused: readonly RefusedKey[], secrets: readonly Buffer[]): void {
  const pieces = secrets
    .flatMap((bytes) => (["hex", "base64", "base64url"] as const).map((encoding) => bytes.toString(encoding)))
    .flatMap((text) => Array.from({ length: text.length - 7 }, (_, start) => text.slice(start, start + 8)));

  test.each(refused)("%s", (_title, input, options, message) => {
    const error = errorOf(() => importVerificationKey("k1", input as PublicKeyInput, options));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toMatch(/^importVerificationKey: /);
    expect(error.message).toMatch(message);
    expect(error.cause).toBeUndefined();
    expect(pieces.filter((piece) => error.message.includes(piece))).toEqual([]);
  });
}

function errorOf(run: () => unknown): Error {
  try {
    run();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error("expected a throw");
}
