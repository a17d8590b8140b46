import { createHash } from "node:crypto";
import { privateJwk, verifierKey } from "../hand/keys.mjs";
import { four, now, vector } from "../hand/vector.mjs";

const under = (validity, more = {}) => ({ keys: [verifierKey("ed25519", validity)], ...more });
const retired = { code: "key-retired" };
const revoked = { code: "key-revoked" };
const outOfScope = { code: "key-scope" };
const unknown = { code: "key-unknown" };
const paths = (...allowed) => ({ scope: { paths: allowed } });
const noCreated = {
  parameters: { created: undefined },
  policy: { requiredParameters: ["expires", "keyid", "alg", "nonce"] },
};
const thumbprint = createHash("sha256")
  .update(`{"crv":"Ed25519","kty":"OKP","x":"${privateJwk("ed25519").x}"}`)
  .digest("base64url");

export const theme = "Keys: who they are, and when and for what they are valid";
export const cases = [
  vector("key-of-several", "The keyid picks the key.", {
    keys: [verifierKey("otherEd25519", { keyid: "other" }), verifierKey("ed25519")],
  }),
  vector("key-other-of-several", "The key of another keyid is not tried.", {
    keys: [verifierKey("ed25519", { keyid: "other" }), verifierKey("otherEd25519")],
    code: "signature-mismatch",
  }),
  vector("keyid-thumbprint", "A keyid may be the RFC 7638 thumbprint of the key.", {
    parameters: { keyid: `"${thumbprint}"` },
    keys: [verifierKey("ed25519", { keyid: thumbprint })],
  }),
  vector("keyid-unknown", "A keyid that is not known is refused.", {
    parameters: { keyid: '"test-key-2"' },
    ...unknown,
  }),
  vector("keyid-case", "A keyid is case-sensitive.", { parameters: { keyid: '"Test-Key"' }, ...unknown }),
  vector("keyid-prefix", "A part of a keyid is no keyid.", { parameters: { keyid: '"test"' }, ...unknown }),
  vector("keyid-space", "A keyid with a space behind it is another keyid.", {
    parameters: { keyid: '"test-key "' },
    ...unknown,
  }),
  vector("keyid-prototype", "A keyid is no name of a member that every object has.", {
    parameters: { keyid: '"__proto__"' },
    ...unknown,
  }),
  vector("keyid-constructor", "The same for constructor.", {
    parameters: { keyid: '"constructor"' },
    ...unknown,
  }),
  vector("keyid-path", "A keyid is no path.", { parameters: { keyid: '"../test-key"' }, ...unknown }),
  vector("keyid-escapes", "A keyid may hold escaped characters.", {
    parameters: { keyid: '"a\\"b\\\\c"' },
    keys: [verifierKey("ed25519", { keyid: 'a"b\\c' })],
  }),
  vector(
    "not-before-at",
    "A key is valid for a signature that was created when it begins.",
    under({ notBefore: now }),
  ),
  vector(
    "not-before-earlier",
    "A key is not valid for a signature that was created before it begins.",
    under({ notBefore: now + 1 }, retired),
  ),
  vector(
    "not-before-now",
    "What counts is when the signature was created, not when it arrives.",
    under(
      { notBefore: now },
      {
        parameters: { created: String(now - 1), expires: String(now + 59) },
        ...retired,
      },
    ),
  ),
  vector(
    "not-after-at",
    "A key is valid for a signature that was created when it ends.",
    under({ notAfter: now }),
  ),
  vector(
    "not-after-later",
    "A key is not valid for a signature that was created after it has ended.",
    under({ notAfter: now - 1 }, retired),
  ),
  vector(
    "not-after-arrives-later",
    "A signature that was created in time may arrive later.",
    under({ notAfter: now }, { time: now + 30 }),
  ),
  vector(
    "limits-without-created",
    "A signature without created shows nothing about a key with limits.",
    under({ notBefore: 1 }, { ...noCreated, ...retired }),
  ),
  vector("no-limits-without-created", "A key without limits needs no created.", noCreated),
  vector("retired", "A retired key verifies nothing.", under({ retired: true }, retired)),
  vector(
    "revoked-at",
    "A key verifies nothing from the second at which it is revoked.",
    under({ revokedAt: now }, revoked),
  ),
  vector(
    "revoked-dated-back",
    "A signature that says it is older than the revocation is refused: a thief can say so.",
    under(
      { revokedAt: now },
      {
        parameters: { created: String(now - 30), expires: String(now + 30) },
        ...revoked,
      },
    ),
  ),
  vector("revoked-later", "Before a key is revoked, it verifies.", under({ revokedAt: now + 1 })),
  vector(
    "revoked-later-created",
    "A signature that is created at the revocation or later is refused before it, too.",
    under(
      { revokedAt: now + 1 },
      {
        parameters: { created: String(now + 1), expires: String(now + 60) },
        ...revoked,
      },
    ),
  ),
  vector("scope-path", "A path of the scope is the whole path.", under(paths("/api/v1/transaction"))),
  vector("scope-folder", "A path that ends with a slash is what a path begins with.", under(paths("/api/"))),
  vector("scope-second", "One of several paths is enough.", under(paths("/other", "/api/v1/"))),
  vector(
    "scope-query",
    "The query does not count.",
    under(paths("/api/v1/transaction"), { message: { target: "/api/v1/transaction?a=b" } }),
  ),
  vector(
    "scope-other-path",
    "A path that is not in the scope is refused.",
    under(paths("/api/v1/refund"), outOfScope),
  ),
  vector(
    "scope-longer-path",
    "A path that goes on is another path.",
    under(paths("/api/v1/trans"), outOfScope),
  ),
  vector("scope-inside", "A path is compared from its start.", under(paths("/v1/"), outOfScope)),
  vector("scope-case", "Paths are case-sensitive.", under(paths("/API/"), outOfScope)),
  vector(
    "scope-encoded",
    "Paths are compared as they stand.",
    under(paths("/api/v1/transaction"), {
      message: { target: "/api/v1/%74ransaction" },
      covered: four.map((each) => (each[0] === '"@path"' ? [each[0], "/api/v1/%74ransaction"] : each)),
      ...outOfScope,
    }),
  ),
  vector(
    "scope-environment",
    "A key of an environment verifies there.",
    under({ scope: { environment: "production" } }, { policy: { environment: "production" } }),
  ),
  vector(
    "scope-other-environment",
    "A key of another environment is refused.",
    under({ scope: { environment: "sandbox" } }, { policy: { environment: "production" }, ...outOfScope }),
  ),
  vector(
    "scope-no-environment",
    "A key of an environment verifies nothing where the verifier has none.",
    under({ scope: { environment: "sandbox" } }, outOfScope),
  ),
];
