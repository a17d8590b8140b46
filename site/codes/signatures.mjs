import {
  answerAcceptSignature,
  createSigner,
  importVerificationKey,
} from "@countersign/http-message-signatures";
import { remedyOf } from "@countersign/cli/explain";
import { input, keyid, privateKey, publicKey, refusalOf, signed, unsigned, verified } from "./provoke.mjs";

const now = () => Math.floor(Date.now() / 1000);
const key = (validity) => ({ keys: { [keyid]: importVerificationKey(keyid, publicKey, validity) } });
const by = ["httpSignatureVerify", "payoutEndpoint"];
const row = (cause, remedy, example, provoke, rest = {}) => ({
  status: 401,
  by,
  cause,
  remedy,
  example,
  provoke,
  ...rest,
});

export const signatures = {
  "signature-missing": row(
    "The request has no `Signature` or no `Signature-Input`, or no label is in both.",
    "Sign the request. If the sender does, look for a proxy that drops fields it does not know.",
    "A request with no signature at all:",
    verified(() => ({ ...unsigned(""), rawHeaders: ["Content-Type", "application/json"] })),
  ),
  "signature-ambiguous": row(
    "Two signatures of the request fit the policy, and none is chosen by guessing.",
    `${remedyOf("signature-ambiguous")} Or choose by the option \`label\` or \`tag\`.`,
    "The same request signed twice, under two labels:",
    verified(() => {
      const one = signed();
      const two = signed({ label: "sig2" });
      return { ...one, rawHeaders: [...one.rawHeaders, ...two.rawHeaders.slice(-4)] };
    }),
  ),
  "signature-malformed": row(
    "The signature has not the length of an Ed25519 signature, 64 bytes.",
    "Send the raw signature, neither DER nor hex text, as a byte sequence between colons.",
    "Three bytes in place of 64:",
    verified(() => unsigned(input(), { signature: "sig1=:AAAA:" })),
  ),
  "signature-mismatch": row(
    "The signature is not that of this request under the key of this `keyid`: another key signed, the request was changed on its way, or the two sides build different signature bases.",
    "Compare the bases of both sides, line by line: [I get a 401](../guide/unauthorized.md). A proxy that rewrites the path is the usual reason.",
    "The path was changed after signing:",
    verified(() => signed({}, (message) => ({ ...message, target: "/v1/transaction" }))),
  ),
  "signature-expired": row(
    "Now is after `expires`.",
    "Sign each attempt anew, also a retry. If the request was fresh, compare the clocks of both machines.",
    "Signed two minutes ago:",
    verified(() => signed({ created: now() - 120 })),
  ),
  "created-in-future": row(
    "`created` lies further ahead than `clockSkewSeconds`, 30 seconds by default.",
    "Set the clocks of both machines by NTP. Send Unix seconds, not milliseconds.",
    "Signed as of two minutes ahead:",
    verified(() => signed({ created: now() + 120 })),
  ),
  "field-invalid": row(
    "`Signature` or `Signature-Input` is not a well-formed structured field (RFC 8941), or two parsers could interpret it differently.",
    "Serialise it with a library of structured fields.",
    "A list of components that does not end:",
    verified(() => unsigned('sig1=("@method"')),
  ),
  "field-limit": row(
    "A field exceeds a limit: 4,096 characters, 4 labels, 16 components, 8 parameters.",
    "Send less.",
    "Five labels:",
    verified(() => unsigned([1, 2, 3, 4, 5].map((n) => `s${n}=("@method");created=1`).join(", "))),
  ),
  "components-empty": row(
    "The signature covers nothing.",
    "Cover the required components.",
    "A signature over an empty list:",
    verified(() => unsigned(input({ components: "" }))),
  ),
  "component-required": row(
    "A required component is not covered.",
    "Cover `@method`, `@path`, `content-type` and `content-digest`, or what `requiredComponents` names.",
    "`content-digest` is not covered:",
    verified(() => signed({ components: ["@method", "@path", "content-type"] })),
  ),
  "component-forbidden": row(
    "The signature covers a component of `forbiddenComponents`.",
    "Leave it out.",
    "`host` is covered, and forbidden:",
    verified(() => signed({ components: ["@method", "@path", "content-type", "content-digest", "host"] }), {
      forbiddenComponents: ["host"],
    }),
  ),
  "component-duplicate": row(
    "A component is listed twice.",
    "List each once.",
    "`@method` twice:",
    verified(() => unsigned(input({ components: '"@method" "@method"' }))),
  ),
  "component-name-invalid": row(
    "A component's name is not a field name in lower case.",
    "Write field names in lower case.",
    "An upper-case name:",
    verified(() => unsigned(input({ components: '"Content-Type"' }))),
  ),
  "component-unsupported": row(
    "A derived component is unknown, or a request does not have it.",
    "Cover components that a request has.",
    "`@status` of a request:",
    verified(() => unsigned(input({ components: '"@status"' }))),
  ),
  "component-parameter-unsupported": row(
    "A component has a parameter that is unknown, does not apply to it, or contradicts another one.",
    "Leave the parameter out.",
    "A parameter of one's own:",
    verified(() => unsigned(input({ components: '"content-type";mine' }))),
  ),
  "covered-field-missing": row(
    "A covered field is not in the request.",
    "Send it, or do not cover it. If the sender sends it, a proxy has dropped it.",
    "A covered field that did not arrive:",
    verified(() =>
      unsigned(input({ components: '"x-request-id" "@method" "@path" "content-type" "content-digest"' })),
    ),
  ),
  "covered-field-repeated": row(
    "A covered field that has one value, such as Content-Type, came twice.",
    "Send it once; look for a proxy that adds one.",
    "Two lines of Content-Type:",
    verified(() => unsigned(input(), { headers: ["Content-Type", "text/plain"] })),
  ),
  "covered-field-invalid": row(
    "Two parsers could interpret a covered value differently: it has characters beyond printable ASCII, or is not the structured field that it should be.",
    "Encode the value.",
    "A letter beyond ASCII in a covered field:",
    verified(() =>
      unsigned(input({ components: '"x-note" "@method" "@path" "content-type" "content-digest"' }), {
        headers: ["X-Note", "caf\u00e9"],
      }),
    ),
  ),
  "target-invalid": row(
    "The request target is not a plain path: it has dot segments, a backslash, `%2e`, two slashes at its start, or is a whole URL.",
    `${remedyOf("target-invalid")} Nothing is normalised, since a proxy and this server might do it differently.`,
    "A dot segment in the path:",
    verified(() => unsigned(input(), { target: "/api/../api/v1/transaction" })),
  ),
  "method-invalid": row(
    "The method is not a token (RFC 9110).",
    remedyOf("method-invalid"),
    "A blank in the method, as only a server of one's own can hand over:",
    verified(() => unsigned(input(), { method: "PO ST" })),
  ),
  "authority-conflict": row(
    "Two Host lines, or over HTTP/2 a Host that differs from `:authority`.",
    remedyOf("authority-conflict"),
    "Two Host lines, with `@authority` covered:",
    verified(() =>
      unsigned(input({ components: '"@authority" "@method" "@path" "content-type" "content-digest"' }), {
        headers: ["Host", "other.example"],
      }),
    ),
  ),
  "signature-request-refused": row(
    "`answerAcceptSignature` was asked for a key or algorithm that the signer does not have, for a tag that is not accepted, or with an unknown parameter.",
    "Ask for what the signer has.",
    "A tag that the signer does not take:",
    () =>
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
    { status: undefined, by: ["answerAcceptSignature"] },
  ),
  "tag-invalid": row(
    "`tag` is not a string.",
    "Send it as a string.",
    "A number:",
    verified(() => unsigned(input({ parameters: { tag: 7 } }))),
  ),
  "tag-mismatch": row(
    "`tag` is not what the option `tag` requires, or is excluded by it.",
    "Sign with the required tag.",
    "A tag is required, and there is none:",
    verified(() => signed(), { tag: { require: "payout" } }),
  ),
  "parameter-forbidden": row(
    "The signature has a parameter of `forbiddenParameters`.",
    "Leave it out.",
    "`tag` is there, and forbidden:",
    verified(() => signed({ tag: "payout" }), { forbiddenParameters: ["tag"] }),
  ),
  "alg-invalid": row(
    "`alg` is missing where it is required, or is not a string.",
    'Send `alg="ed25519"`.',
    "No `alg`:",
    verified(() => unsigned(input({ parameters: { alg: undefined } }))),
  ),
  "alg-mismatch": row(
    "`alg` is not an accepted algorithm, or not the key's.",
    'Sign by Ed25519 and send `alg="ed25519"`.',
    "Another algorithm:",
    verified(() => unsigned(input({ parameters: { alg: '"rsa-pss-sha512"' } }))),
  ),
  "keyid-invalid": row(
    "`keyid` is missing, not a string, empty, or longer than 256 characters.",
    "Send the keyid that was handed over with the public key.",
    "No `keyid`:",
    verified(() => unsigned(input({ parameters: { keyid: undefined } }))),
  ),
  "nonce-invalid": row(
    "`nonce` is missing where it is required, not a string, empty, or longer than 128 characters.",
    "Send a fresh UUID with each attempt.",
    "No `nonce`:",
    verified(() => unsigned(input({ parameters: { nonce: undefined } }))),
  ),
  "created-invalid": row(
    "`created` is missing where it is required, or is not a whole number.",
    "Send Unix seconds.",
    "No `created`:",
    verified(() => unsigned(input({ parameters: { created: undefined } }))),
  ),
  "expires-invalid": row(
    "`expires` is missing where it is required, is not a whole number, or is not later than `created`.",
    "Send `created` and 60 seconds, both as Unix seconds and not milliseconds.",
    "It ends when it begins:",
    verified(() => unsigned(input({ parameters: { expires: now() } }))),
  ),
  "window-too-long": row(
    "`expires - created` is more than `windowSeconds`, 60 by default.",
    "Sign for a shorter time. Send Unix seconds, not milliseconds.",
    "Ten minutes:",
    verified(() => unsigned(input({ parameters: { expires: now() + 600 } }))),
  ),
  "key-unknown": row(
    "No key is configured under this `keyid`.",
    "Compare the keyid of `Signature-Input` with those of the option `keys`. During a rotation, check that the new key is configured here.",
    "A keyid that nobody knows:",
    verified(() => signed({ keyid: "service-2027" })),
  ),
  "key-mismatch": row(
    "The key store returned the record of another keyid, or a key that `importVerificationKey` did not make.",
    "Repair the key store.",
    "A store that gives one key for every keyid:",
    verified(() => signed(), { keys: () => importVerificationKey("another", publicKey) }),
  ),
  "key-retired": row(
    "The key is retired, or `created` is outside its `notBefore` and `notAfter`.",
    "Sign with the current key.",
    "A retired key:",
    verified(() => signed(), key({ retired: true })),
  ),
  "key-revoked": row(
    "The key's `revokedAt` has passed, or the signature claims a later time.",
    "Sign with another key. If nobody here has revoked it, treat the private key as stolen.",
    "A revoked key:",
    verified(() => signed(), key({ revokedAt: now() - 10 })),
  ),
  "key-scope": row(
    "The key may not sign this path, or belongs to another environment than the option `environment` says.",
    "Sign with a key for this path and environment, or widen its `scope`.",
    "A key of the staging environment:",
    verified(() => signed(), { ...key({ scope: { environment: "staging" } }), environment: "production" }),
  ),
  "query-not-covered": row(
    "The target has a query, and no covered component signs it.",
    `${remedyOf("query-not-covered")} Or set \`allowUnsignedQuery\`.`,
    "A query that was added after signing:",
    verified(() => signed({}, (message) => ({ ...message, target: `${message.target}?dry=1` }))),
  ),
  "body-not-covered": row(
    "The request has a body, and the signature does not cover `content-digest`.",
    `${remedyOf("body-not-covered")} Or set \`allowUnsignedBody\`.`,
    "A policy without `content-digest`, and a request with a body:",
    verified(() => signed({ components: ["@method", "@path"] }), {
      requiredComponents: ["@method", "@path"],
    }),
  ),
  "method-override": row(
    "The request has a field such as `X-HTTP-Method-Override`, or another middleware replaced the method: the signed method is not the one that would run.",
    `${remedyOf("method-override")} Or mount that middleware after the guard.`,
    "With `X-HTTP-Method-Override: DELETE`:",
    verified(() =>
      signed({}, (message) => ({
        ...message,
        rawHeaders: [...message.rawHeaders, "X-HTTP-Method-Override", "DELETE"],
      })),
    ),
  ),
  "nonce-replayed": row(
    "The nonce was used before under this keyid: somebody sent the same signed request twice.",
    `${remedyOf("nonce-replayed")} If the sender does so, somebody replays its requests.`,
    "The same request, byte for byte, twice:",
    () => {
      const one = signed();
      return verified([one, { ...one }])();
    },
  ),
  "key-store-unavailable": row(
    "The key store threw, did not answer within `storeTimeoutMs`, or has no keys yet.",
    "Repair the store; the sender retries. `error.cause` has the store's error.",
    "A look-up whose database is down:",
    verified(() => signed(), {
      keys: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:5432")),
    }),
    { status: 503 },
  ),
  "key-unusable": row(
    "The key store returned what is no key to verify with: a private key, a weak or damaged one, or another object.",
    "Store the public key in one of the [forms](./packages/http-message-signatures.md#options); the message names the fault.",
    "A database that holds the private key:",
    verified(() => signed(), { keys: () => privateKey.export({ type: "pkcs8", format: "pem" }) }),
    { status: 503 },
  ),
  "policy-unknown": row(
    "The option `policy` returned undefined for the keyid, tag and label of each signature.",
    `${remedyOf("policy-unknown")} Or register the partner.`,
    "A partner that nobody has registered:",
    verified(() => signed(), { policy: () => undefined }),
  ),
  "policy-unusable": row(
    "The option `policy` threw, did not answer within `storeTimeoutMs`, or returned a policy that the options refuse.",
    "Repair the function or the record; the sender retries. The message names a refused member.",
    "A record with a window of a day:",
    verified(() => signed(), { policy: () => ({ windowSeconds: 86_400 }) }),
    { status: 503 },
  ),
  "nonce-store-unavailable": row(
    "The nonce store threw, did not answer within `storeTimeoutMs`, or is full.",
    "Repair or enlarge the store; the sender retries.",
    "A store that is down:",
    verified(() => signed(), {
      nonces: { claim: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:6379")) },
    }),
    { status: 503 },
  ),
};
