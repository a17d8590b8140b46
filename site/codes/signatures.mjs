import {
  answerAcceptSignature,
  createSigner,
  importVerificationKey,
} from "@countersign/http-message-signatures";
import { input, keyid, privateKey, publicKey, refusalOf, signed, unsigned, verified } from "./provoke.mjs";

const now = () => Math.floor(Date.now() / 1000);
const key = (validity) => ({ keys: { [keyid]: importVerificationKey(keyid, publicKey, validity) } });

export const signatures = {
  "signature-missing": verified(() => ({
    ...unsigned(""),
    rawHeaders: ["Content-Type", "application/json"],
  })),
  "signature-ambiguous": verified(() => {
    const one = signed();
    const two = signed({ label: "sig2" });
    return { ...one, rawHeaders: [...one.rawHeaders, ...two.rawHeaders.slice(-4)] };
  }),
  "signature-malformed": verified(() => unsigned(input(), { signature: "sig1=:AAAA:" })),
  "signature-mismatch": verified(() => signed({}, (message) => ({ ...message, target: "/v1/transaction" }))),
  "signature-expired": verified(() => signed({ created: now() - 120 })),
  "created-in-future": verified(() => signed({ created: now() + 120 })),
  "field-invalid": verified(() => unsigned('sig1=("@method"')),
  "field-limit": verified(() =>
    unsigned([1, 2, 3, 4, 5].map((n) => `s${n}=("@method");created=1`).join(", ")),
  ),
  "components-empty": verified(() => unsigned(input({ components: "" }))),
  "component-required": verified(() => signed({ components: ["@method", "@path", "content-type"] })),
  "component-forbidden": verified(
    () => signed({ components: ["@method", "@path", "content-type", "content-digest", "host"] }),
    {
      forbiddenComponents: ["host"],
    },
  ),
  "component-duplicate": verified(() => unsigned(input({ components: '"@method" "@method"' }))),
  "component-name-invalid": verified(() => unsigned(input({ components: '"Content-Type"' }))),
  "component-unsupported": verified(() => unsigned(input({ components: '"@status"' }))),
  "component-parameter-unsupported": verified(() => unsigned(input({ components: '"content-type";mine' }))),
  "covered-field-missing": verified(() =>
    unsigned(input({ components: '"x-request-id" "@method" "@path" "content-type" "content-digest"' })),
  ),
  "covered-field-repeated": verified(() => unsigned(input(), { headers: ["Content-Type", "text/plain"] })),
  "covered-field-invalid": verified(() =>
    unsigned(input({ components: '"x-note" "@method" "@path" "content-type" "content-digest"' }), {
      headers: ["X-Note", "caf\u00e9"],
    }),
  ),
  "target-invalid": verified(() => unsigned(input(), { target: "/api/../api/v1/transaction" })),
  "method-invalid": verified(() => unsigned(input(), { method: "PO ST" })),
  "authority-conflict": verified(() =>
    unsigned(input({ components: '"@authority" "@method" "@path" "content-type" "content-digest"' }), {
      headers: ["Host", "other.example"],
    }),
  ),
  "signature-request-refused": () =>
    refusalOf("answerAcceptSignature", async () => {
      const message = { method: "GET", target: "/", rawHeaders: [] };
      const asked = { label: "sig1", text: 'sig1=("@method");tag="other"' };
      const { parseAcceptSignature } = await import("@countersign/http-message-signatures");
      const [request] = parseAcceptSignature(asked.text);
      await answerAcceptSignature(message, request, {
        signer: createSigner(privateKey, keyid),
        tags: ["mine"],
      });
    }),
  "tag-invalid": verified(() => unsigned(input({ parameters: { tag: 7 } }))),
  "tag-mismatch": verified(() => signed(), { tag: { require: "payout" } }),
  "parameter-forbidden": verified(() => signed({ tag: "payout" }), { forbiddenParameters: ["tag"] }),
  "alg-invalid": verified(() => unsigned(input({ parameters: { alg: undefined } }))),
  "alg-mismatch": verified(() => unsigned(input({ parameters: { alg: '"rsa-pss-sha512"' } }))),
  "keyid-invalid": verified(() => unsigned(input({ parameters: { keyid: undefined } }))),
  "nonce-invalid": verified(() => unsigned(input({ parameters: { nonce: undefined } }))),
  "created-invalid": verified(() => unsigned(input({ parameters: { created: undefined } }))),
  "expires-invalid": verified(() => unsigned(input({ parameters: { expires: now() } }))),
  "window-too-long": verified(() => unsigned(input({ parameters: { expires: now() + 600 } }))),
  "key-unknown": verified(() => signed({ keyid: "service-2027" })),
  "key-mismatch": verified(() => signed(), { keys: () => importVerificationKey("another", publicKey) }),
  "key-retired": verified(() => signed(), key({ retired: true })),
  "key-revoked": verified(() => signed(), key({ revokedAt: now() - 10 })),
  "key-scope": verified(() => signed(), {
    ...key({ scope: { environment: "staging" } }),
    environment: "production",
  }),
  "query-not-covered": verified(() =>
    signed({}, (message) => ({ ...message, target: `${message.target}?dry=1` })),
  ),
  "body-not-covered": verified(() => signed({ components: ["@method", "@path"] }), {
    requiredComponents: ["@method", "@path"],
  }),
  "method-override": verified(() =>
    signed({}, (message) => ({
      ...message,
      rawHeaders: [...message.rawHeaders, "X-HTTP-Method-Override", "DELETE"],
    })),
  ),
  "nonce-replayed": () => {
    const one = signed();
    return verified([one, { ...one }])();
  },
  "key-store-unavailable": verified(() => signed(), {
    keys: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:5432")),
  }),
  "key-unusable": verified(() => signed(), {
    keys: () => privateKey.export({ type: "pkcs8", format: "pem" }),
  }),
  "policy-unknown": verified(() => signed(), { policy: () => undefined }),
  "policy-unusable": verified(() => signed(), { policy: () => ({ windowSeconds: 86_400 }) }),
  "nonce-store-unavailable": verified(() => signed(), {
    nonces: { claim: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:6379")) },
  }),
};
