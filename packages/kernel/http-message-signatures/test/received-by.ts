import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/internal";
import {
  parseSignatureInput,
  sign,
  type ReceivedSignature,
  type SignatureAlgorithm,
} from "@countersign/http-message-signatures";
import { MessageValues } from "../src/components.ts";
import { collectFieldLines } from "../src/message.ts";
import { keyOf } from "./algorithm-keys.ts";

const message = { method: "POST", target: "/", rawHeaders: ["Content-Type", "application/json"] };

/** What the last step of verifying needs of a request that the key of `alg` has signed. */
export function receivedBy(alg: SignatureAlgorithm): ReceivedSignature {
  const components = ["@method", "content-type"];
  const { signatureInput, signature } = sign(message, {
    key: keyOf(alg).signing,
    alg,
    keyid: "test-key",
    components,
  });
  const input = parseSignatureInput(signatureInput).get("sig1");
  const bytes = parseByteSequenceDictionary(signature, "Signature").get("sig1");
  if (input === undefined || bytes === undefined) throw new Error("no label sig1");
  return {
    label: "sig1",
    keyid: "test-key",
    alg,
    created: 1,
    expires: 2,
    nonce: "n",
    coveredComponents: components,
    input,
    signature: bytes,
    values: new MessageValues(message, collectFieldLines(message.rawHeaders), undefined),
    tag: undefined,
    algorithms: [alg],
  };
}
