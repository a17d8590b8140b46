import {
  answerAcceptSignature,
  createSigner,
  importVerificationKey,
} from "@countersign/http-message-signatures";
import { remedyOf } from "@countersign/explain";
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
    "The request has no `Signature` or no `Signature-Input`, or no label stands in both.",
    "Sign the request. If the sender does, look for a proxy that drops fields it does not know.",
    "A request with no signature at all:",
    verified(() => ({ ...unsigned(""), rawHeaders: ["Content-Type", "application/json"] })),
  ),
  "signature-ambiguous": row(
    "Two signatures of the request fit what is asked for, and nobody can say which one counts.",
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
    "Set the clocks of both machines by NTP.",
    "Signed as of two minutes ahead:",
    verified(() => signed({ created: now() + 120 })),
  ),
  "field-invalid": row(
    "`Signature` or `Signature-Input` is not a well-formed structured field (RFC 8941), or is one that two readers could read differently.",
    "Serialise it with a library of structured fields.",
    "A list of components that does not end:",
    verified(() => unsigned('sig1=("@method"')),
  ),
  "field-limit": row(
    "A field is longer, or has more labels, components or parameters, than is taken: 4,096 characters, 4 labels, 16 components.",
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
    "A component that has to be covered is not.",
    "Cover `@method`, `@path`, `content-type` and `content-digest`, or what `requiredComponents` names.",
    "`content-digest` is not covered:",
    verified(() => signed({ components: ["@method", "@path", "content-type"] })),
  ),
  "component-forbidden": row(
    "The signature covers what `forbiddenComponents` names.",
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
    "The name of a component is no field name in lower case.",
    "Write the names of fields in lower case.",
    "An upper-case name:",
    verified(() => unsigned(input({ components: '"Content-Type"' }))),
  ),
  "component-unsupported": row(
    "A derived component that is not known, or that a request does not have.",
    "Cover what the message has.",
    "`@status` of a request:",
    verified(() => unsigned(input({ components: '"@status"' }))),
  ),
  "component-parameter-unsupported": row(
    "A component has a parameter that is not known, does not go with it, or contradicts another one.",
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
    "A covered value holds something that two readers could read differently: characters beyond printable ASCII, or no structured field where one is due.",
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
    "The method is no token of RFC 9110.",
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
    "`answerAcceptSignature` was asked for another key or algorithm than the signer has, for a tag that is not taken, or with an unknown parameter.",
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
    "`tag` is no string.",
    "Send it as a string.",
    "A number:",
    verified(() => unsigned(input({ parameters: { tag: 7 } }))),
  ),
  "tag-mismatch": row(
    "`tag` is not one that the option `tag` requires, or is one that it excludes.",
    "Sign with the tag that is due.",
    "A tag is required, and there is none:",
    verified(() => signed(), { tag: { require: "payout" } }),
  ),
  "parameter-forbidden": row(
    "The signature has a parameter that `forbiddenParameters` names.",
    "Leave it out.",
    "`tag` is there, and forbidden:",
    verified(() => signed({ tag: "payout" }), { forbiddenParameters: ["tag"] }),
  ),
  "alg-invalid": row(
    "`alg` is missing where it is due, or is no string.",
    'Send `alg="ed25519"`.',
    "No `alg`:",
    verified(() => unsigned(input({ parameters: { alg: undefined } }))),
  ),
  "alg-mismatch": row(
    "`alg` is not an accepted algorithm, or not that of the key.",
    'Sign by Ed25519 and send `alg="ed25519"`.',
    "Another algorithm:",
    verified(() => unsigned(input({ parameters: { alg: '"rsa-pss-sha512"' } }))),
  ),
  "keyid-invalid": row(
    "`keyid` is missing, no string, empty, or longer than 256 characters.",
    "Send the keyid that was handed over with the public key.",
    "No `keyid`:",
    verified(() => unsigned(input({ parameters: { keyid: undefined } }))),
  ),
  "nonce-invalid": row(
    "`nonce` is missing where it is due, no string, empty, or longer than 128 characters.",
    "Send a fresh UUID with each attempt.",
    "No `nonce`:",
    verified(() => unsigned(input({ parameters: { nonce: undefined } }))),
  ),
  "created-invalid": row(
    "`created` is missing where it is due, or is no whole number.",
    "Send Unix seconds.",
    "No `created`:",
    verified(() => unsigned(input({ parameters: { created: undefined } }))),
  ),
  "expires-invalid": row(
    "`expires` is missing where it is due, is no whole number, or is not later than `created`.",
    "Send `created` and 60 seconds.",
    "It ends when it begins:",
    verified(() => unsigned(input({ parameters: { expires: now() } }))),
  ),
  "window-too-long": row(
    "`expires - created` is more than `windowSeconds`, 60 by default.",
    "Sign for a shorter time.",
    "Ten minutes:",
    verified(() => unsigned(input({ parameters: { expires: now() + 600 } }))),
  ),
  "key-unknown": row(
    "No key is configured under this `keyid`.",
    "Compare the keyid of `Signature-Input` with those of the option `keys`. During a rotation: is the new key published here?",
    "A keyid that nobody knows:",
    verified(() => signed({ keyid: "service-2027" })),
  ),
  "key-mismatch": row(
    "The key store gave the record of another keyid, or a key that `importVerificationKey` has not made.",
    "Repair the key store.",
    "A store that gives one key for every keyid:",
    verified(() => signed(), { keys: () => importVerificationKey("another", publicKey) }),
  ),
  "key-retired": row(
    "The key is retired, or `created` lies outside of its `notBefore` and `notAfter`.",
    "Sign with the current key.",
    "A retired key:",
    verified(() => signed(), key({ retired: true })),
  ),
  "key-revoked": row(
    "The key's `revokedAt` has come, or the signature claims to be of that time or later.",
    "Sign with another key. If nobody here has revoked it, treat the private key as stolen.",
    "A revoked key:",
    verified(() => signed(), key({ revokedAt: now() - 10 })),
  ),
  "key-scope": row(
    "The key may not sign this path, or belongs to another environment than the option `environment` says.",
    "Sign with a key that is meant for this, or widen its `scope`.",
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
    "There is a body, and the signature does not cover `content-digest`.",
    `${remedyOf("body-not-covered")} Or set \`allowUnsignedBody\`.`,
    "A policy without `content-digest`, and a request with a body:",
    verified(() => signed({ components: ["@method", "@path"] }), {
      requiredComponents: ["@method", "@path"],
    }),
  ),
  "method-override": row(
    "The request has a field such as `X-HTTP-Method-Override`, or another middleware has replaced the method: what was signed is not what would run.",
    `${remedyOf("method-override")} Or mount that middleware behind the guard.`,
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
    "The key store threw, did not answer within `storeTimeoutMs`, or has no set of keys yet.",
    "Repair it; the sender comes again. `error.cause` says more.",
    "A look-up whose database is down:",
    verified(() => signed(), {
      keys: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:5432")),
    }),
    { status: 503 },
  ),
  "nonce-store-unavailable": row(
    "The nonce store threw, did not answer within `storeTimeoutMs`, or is full.",
    "Repair or enlarge it; the sender comes again.",
    "A store that is down:",
    verified(() => signed(), {
      nonces: { claim: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:6379")) },
    }),
    { status: 503 },
  ),
};
