import {
  httpSignatureVerify,
  memoryNonceStore,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";

// The keys of the agents that you know, each under its RFC 7638 thumbprint.
// TEST KEY of RFC 9421 appendix B.1.4.
const keys = {
  "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U":
    "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
};

export const policy: HttpSignatureVerifyOptions = {
  keys,
  nonces: memoryNonceStore(),
  origin: "https://shop.example",
  tag: { require: "web-bot-auth" },
  label: "sig1",
  requiredComponents: ["@authority", '"signature-agent";key="sig1"'],
  fieldTypes: { "signature-agent": "dictionary" },
  requiredParameters: ["created", "expires", "keyid", "tag"],
  algorithms: ["ed25519"],
  windowSeconds: 3600,
  // Who sends it is all that the signature shows.
  allowUnsignedQuery: true,
  allowUnsignedBody: true,
};

export const verifyAgent = httpSignatureVerify(policy);

/** Earlier drafts: Signature-Agent is one string, and is covered whole. */
export const earlierPolicy: HttpSignatureVerifyOptions = {
  ...policy,
  label: undefined,
  fieldTypes: undefined,
  requiredComponents: ["@authority", "signature-agent"],
};
