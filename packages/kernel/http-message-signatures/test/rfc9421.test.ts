import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import {
  createSignatureBase,
  importVerificationKey,
  parseSignatureInput,
  verifySignature,
  type ReceivedSignature,
  type RequestMessage,
  type SignatureInput,
} from "@countersign/http-message-signatures";
import type { Message } from "../dist/message.js";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/door";
import { MessageValues } from "../src/components.ts";
import { collectFieldLines } from "../src/message.ts";
import { verdictOf } from "./hand-signer.ts";

interface Example {
  readonly id: string;
  readonly note?: string;
  readonly label: string;
  readonly signatureInput: string;
  readonly signature: string;
  readonly signatureBase: string;
}
interface MessageExample extends Example {
  readonly message: RequestMessage;
}

const rfc = JSON.parse(readFileSync(new URL("fixtures/rfc9421-ed25519.json", import.meta.url), "utf8")) as {
  readonly key: {
    readonly keyid: string;
    readonly publicPem: string;
  };
  readonly testRequest: RequestMessage;
  readonly ed25519: readonly (MessageExample & { readonly valid: boolean })[];
  readonly otherAlgorithms: readonly (Example & { readonly message: Message })[];
  readonly refused: readonly (Example & { readonly code: string })[];
};
const key = importVerificationKey(rfc.key.keyid, rfc.key.publicPem);

const titled = <T extends Example>(examples: readonly T[]): (readonly [string, T])[] =>
  examples.map((example) => [`${example.id} ${example.note ?? ""}`.trim(), example] as const);

function inputOf({ signatureInput, label }: Example): SignatureInput {
  const input = parseSignatureInput(signatureInput).get(label);
  if (input === undefined) throw new Error(`no label ${label}`);
  return input;
}

function bytesOf({ signature, label }: Example): Buffer {
  const bytes = parseByteSequenceDictionary(signature).get(label);
  if (bytes === undefined) throw new Error(`no label ${label}`);
  return bytes;
}

/** What the last step needs. The examples have no alg, expires and nonce, so that readSignature refuses them. */
function received(example: MessageExample): ReceivedSignature {
  const { message, label } = example;
  const input = inputOf(example);
  return {
    label,
    keyid: rfc.key.keyid,
    alg: "ed25519",
    created: 1_618_884_473,
    expires: 1_618_884_533,
    nonce: "",
    algorithms: ["ed25519"],
    coveredComponents: input.components.map(({ name }) => name),
    input,
    signature: bytesOf(example),
    values: new MessageValues(message, collectFieldLines(message.rawHeaders)),
  };
}

describe("the Ed25519 examples of RFC 9421", () => {
  test.each(titled(rfc.ed25519))("have the base of %s byte for byte", (_title, example) => {
    expect(createSignatureBase(example.message, inputOf(example))).toBe(example.signatureBase);
  });

  test.each(titled(rfc.ed25519))("verify in both engines as the RFC says: %s", (_title, example) => {
    const verdict = example.valid ? "accepted" : "signature-mismatch";
    for (const engine of ["native", "noble"] as const) {
      expect(verdictOf(() => verifySignature(received(example), key, engine))).toBe(verdict);
    }
  });
});

describe("the examples of RFC 9421 with other algorithms", () => {
  test.each(titled(rfc.otherAlgorithms))("have the base of %s byte for byte", (_title, example) => {
    expect(createSignatureBase(example.message, inputOf(example))).toBe(example.signatureBase);
  });

  test.each(titled(rfc.refused))("refuse the components of %s", (_title, example) => {
    expect(verdictOf(() => createSignatureBase(rfc.testRequest, inputOf(example)))).toBe(example.code);
  });
});
