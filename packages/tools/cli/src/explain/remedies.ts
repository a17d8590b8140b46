import type { Remedy } from "./explanation.ts";

// By code: the whole explanation.
const ofCodes = {
  "authority-conflict":
    "Send one Host, the same as :authority: the request names its server twice, or two of them.",
  "body-not-covered":
    'Send Content-Digest and cover "content-digest" in Signature-Input: nothing signs the body.',
  "key-store-unavailable":
    "Nothing to change: the key store gave no answer, so nobody knows whether the signature fits.",
  "key-unusable":
    "Nothing to change: the receiver has no usable key under this keyid, so nobody knows whether the signature fits.",
  "method-invalid": "Send a method that is a token, such as POST.",
  "method-override": "Send the request by its own method, without X-HTTP-Method-Override or its like.",
  "nonce-replayed":
    "Use a nonce of its own for each request, also when it is sent again: this one was used before.",
  "policy-unknown":
    "Sign with the keyid that was agreed: the receiver has no policy for this keyid, tag or label.",
  "policy-unusable": "Nothing to change: the receiver could not read its policy for this signature.",
  "query-not-covered": 'Cover "@query" in Signature-Input, or send the request without a query.',
  "request-aborted": "Nothing to change: the client closed the connection before the body was complete.",
  "signature-ambiguous":
    "Send one signature that fits the profile: there are several in Signature-Input, and none is chosen by guess.",
  "target-invalid":
    "Send the request target as a path and query alone, without a full URL, dot segments, double slashes at its start, # or \\.",
};

const ofMistakes = {
  "labels-differ":
    "Give the signature the same label in both fields: it is {input} in Signature-Input and {signature} in Signature.",
  "label-not-looked-at":
    "Give the signature the label {label}, the only one that is looked at: it has {found}.",
  "signature-absent": "Send Signature-Input and Signature: the request has neither of them.",
  "signature-field-absent": "Send Signature too: the request has Signature-Input alone.",
  "signature-field-name": "Send {field} under that name: the request has {found}.",
  "signature-input-absent": "Send Signature-Input too: the request has Signature alone.",
  "signature-cavage":
    "Sign by RFC 9421, with the fields Signature-Input and Signature: the request has a signature of the older draft-cavage-http-signatures.",
  "field-too-long": "Make {field} shorter: {fault}.",
  "signature-input-form":
    'Write Signature-Input as sig1=("@method" "@path");created=1700000000;keyid="...", since {fault}.',
  "signature-input-escaped-quotes":
    'Write the quotes of Signature-Input as " alone, without a backslash before them.',
  "signature-input-single-quotes": "Write the texts of Signature-Input in double quotes, not in single ones.",
  "signature-input-without-label":
    "Begin Signature-Input with a label, sig1=(...), the one that Signature has.",
  "signature-input-list-commas": "Separate the components of Signature-Input by blanks, without commas.",
  "signature-input-list-unquoted":
    'Write each component of Signature-Input in double quotes, such as "@method".',
  "signature-input-parameter-letter-case":
    "Write the names of the parameters of Signature-Input in lower case, keyid and not keyId.",
  "signature-input-separator": "Separate the parameters of Signature-Input by semicolons, not by commas.",
  "signature-input-created-date": "Write created and expires in Signature-Input as Unix seconds, {form}.",
  "signature-form": "Write Signature as sig1=:<base64>:, since {fault}.",
  "signature-without-label":
    "Begin Signature with the label of Signature-Input, and put its base64 between colons: sig1=:<base64>:.",
  "signature-hex": "Write the signature of Signature in base64 between colons: it is there in hex.",
  "signature-quoted": "Put the base64 of Signature between colons, sig1=:<base64>:, not in quotes.",
  "signature-without-colons": "Put the base64 of Signature between colons: sig1=:<base64>:.",
  "signature-base64url":
    "Write the signature of Signature in base64, with + and /: it is there in base64url.",
  "signature-without-padding": "Write the base64 of Signature with its padding, the = at its end.",

  "alg-not-taken": "Sign with a key of {taken}: the verifier takes no signature by {alg}.",
  "alg-other": "Send alg={wanted}, the algorithm of the key: Signature-Input has {alg}.",
  "component-duplicate": "Name each component of Signature-Input once{which}",
  "component-forbidden": "Leave {forbidden} out of Signature-Input: it is not taken.",
  "component-letter-case": "Write {wanted} in lower case in Signature-Input: it is there as {name}.",
  "component-name": "Name fields in Signature-Input by their names alone: {name} is no field name.",
  "component-of-response": 'Leave "@status" out of Signature-Input: a request has none.',
  "component-parameter":
    "Name components in Signature-Input without parameters that the message cannot have{which}",
  "component-required": "Cover {missing} in Signature-Input: nothing signs it.",
  "component-signature-params":
    'Leave "@signature-params" out of the list of Signature-Input: it is signed without being named.',
  "component-spelling": "Write {wanted} in Signature-Input where {name} stands.",
  "component-unknown":
    "Name components in Signature-Input that RFC 9421 has: {name} is none of them.{advice}",
  "components-empty": "Cover {required} in Signature-Input: its list is empty.",
  "covered-field-invalid": "Sign fields whose values are printable ASCII and well-formed{which}",
  "covered-field-missing": "Send every field that Signature-Input names, unchanged by proxies{which}",
  "covered-field-repeated": "Send each signed field of one value once{which}",
  "created-in-future":
    "Set the signer's clock: created in Signature-Input is {ahead} s ahead of the verifier's clock.",
  "created-time-zone":
    "Send created in Signature-Input as Unix seconds in UTC: it is {hours} the verifier's clock, as a local time would be.",
  "expires-duration":
    "Send expires in Signature-Input as a point in time, created + {expires} = {end}: it is a duration.",
  "expires-not-later": "Send an expires in Signature-Input that is later than created.",
  "key-retired": "Sign with a key that is in use: {keyid} was not valid when the signature was created.",
  "key-revoked": "Sign with a key that is in use: {keyid} is revoked.",
  "key-scope": "Sign with a key that is for this path and environment: {keyid} is not.",
  "key-unknown":
    "Send a keyid that was handed over, or hand over the public key of {keyid}: no key is known under it, and the signature fits none that is.",
  "keyid-other-name": "Send keyid={signer}: the signature fits that key, and none is known as {keyid}.",
  "keyid-spelling": "Send keyid={near}: no key is known as {keyid}.",
  "parameter-forbidden": "Leave the parameters {forbidden} out of Signature-Input.",
  "signature-expired":
    "Sign each request anew right before it is sent, also when it is sent again: the signature expired {late} s ago by the verifier's clock.",
  "signature-length":
    "Send the 64 bytes of an Ed25519 signature in Signature, in base64: it has another length.",
  "tag-other": "Send the tag in Signature-Input that the verifier takes: it has {tag}.",
  "window-too-long":
    "Send an expires in Signature-Input at most {window} s after created: it is {length} s after it.",

  // A signature that fits nothing that was tried.
  "signature-unexplained":
    "Ask the signer for its signature base, and compare it with the expected one (countersign explain --signer-base): the signature fits no usual mistake under the key {keyid}, so it is another private key, or another base.",
  "signature-of-other-key":
    "Sign with the private key that belongs to {keyid}: the signer's base is the expected one, and the signature does not fit it.",
  "base-differs": "Change the signature base where {place}; the key is the right one.",
  "base-and-signature-differ":
    "Change the signature base where {place}, and look at the key: the signature does not fit the signer's own base either.",

  "body-not-known":
    "Compare Content-Digest with the bytes that are sent: the body was not read, so it is not known whether they fit.",
  "digest-unexplained":
    "Compute Content-Digest over the bytes that are sent: it fits neither the body nor any usual form of it, so the body was changed on its way, or the digest is that of another one.",
  "digest-algorithm-spelling":
    "Write the algorithm of Content-Digest as sha-256 or sha-512, in lower case and with its hyphen.",
  "digest-algorithm": "Send a Content-Digest by sha-256 or sha-512: no other algorithm is taken.",
  "digest-algorithm-name": "Name the algorithm of Content-Digest that was used: the digest is one by {name}.",
  "digest-without-algorithm": "Write Content-Digest as sha-256=:<base64>:, the name of the algorithm first.",
  "digest-form":
    "Write Content-Digest as sha-256=:<base64>:, the digest in base64 with its padding between two colons.",
  "digest-missing": "Send Content-Digest: sha-256=:<base64>: with the digest of the body.",
  "digest-other-field": "Send the digest in the field Content-Digest, as sha-256=:<base64>:, not in {other}.",

  "basic-missing": "Send Authorization with the username and password: the request has none.",
  "basic-repeated": "Send one Authorization: the request has {count} of them.",
  "basic-scheme": "Send Authorization by the scheme Basic: it is by {by}.",
  "basic-scheme-missing": "Begin Authorization with Basic and a blank: the base64 stands there alone.",
  "basic-scheme-form": "Begin Authorization with Basic and one blank: something else stands between them.",
  "basic-not-encoded":
    "Encode username and password of Authorization in base64: they stand there as plain text.",
  "basic-form": "Send username, a colon and password in base64 in Authorization: there is no colon.",
  "basic-part-missing": "Send username and password in Authorization: the {empty} is empty.",
  "basic-token-form": "Write the base64 of Authorization with its padding, with + and /, and over UTF-8.",
  "basic-latin1":
    "Encode username and password of Authorization as UTF-8 before base64: they are in ISO 8859-1.",
  "basic-base64-twice":
    "Encode username and password of Authorization in base64 once: they are encoded twice.",
  "basic-url-encoded": "Send username and password of Authorization without URL encoding.",
  "basic-white-space":
    "Send username and password of Authorization without white space or a line end after them.",
  "basic-exchanged": "Send the username before the password in Authorization: they are exchanged.",
  "basic-password":
    "Compare the passwords of both sides: the username is that of credential number {number}, the password is not.",
  "basic-username":
    "Compare the usernames of both sides: the password is that of credential number {number}, the username is not.",
  "basic-username-letter-case":
    "Compare the usernames of both sides: the password is that of credential number {number}, the username is not, by its letter case.",
  "basic-both":
    "Compare the credentials of both sides: neither the username nor the password is one that is accepted.",

  "hmac-missing": "Send {header} with the HMAC of the body: the request has none.",
  "hmac-field-name":
    "Set header to the field that the sender uses, or let it send {header}: the request has {like}.",
  "hmac-other-scheme":
    "Set scheme to {name}, or let the sender sign in {header}: the request has {other} instead.",
  "hmac-repeated": "Send one {header}: the request has {count} of them.",
  "hmac-form": "Write {header} as an HMAC by {algorithm} in {form}.",
  "hmac-wrong-secret":
    "Compare the secrets of both sides: {header} does not fit {any} in any usual reading, nor the body in any usual form, so the sender has another secret or another body.",
  "hmac-algorithm":
    "Set algorithm, or let the sender use {wanted}: {header} fits secret number {number} by {algorithm}.",
  "hmac-encoding": "Write {header} in {encodings}, or set signatureEncodings: it is in {encoding}.",
  "hmac-prefix": "Write {header} {due}, or set prefix: the signature stands there {has}.",
  "hmac-time-milliseconds": "Send {field} as whole seconds since 1970, not as milliseconds.",
  "hmac-time-missing": "Send {field}, whole seconds since 1970: the request has none.",
  "hmac-time-form": "Send {field} as whole seconds since 1970.",
  "hmac-expired":
    "Sign each delivery anew, and compare the clocks: {field} is older than toleranceSeconds allow.",
  "hmac-in-future": "Compare the clocks: {field} lies ahead of the receiver's clock.",
  "hmac-id-missing": "Send the identifier of the message in its field: it is signed.",
  "hmac-id-form": "Send one identifier of the message of visible ASCII, without dots.",
};

const all = { ...ofCodes, ...ofMistakes };

export type Told = keyof typeof all;

/** Values for the places `{name}` of a sentence. Text of the request must be quoted. */
type Values = Readonly<Record<string, string | number>>;

export function remedy(what: Told, values: Values = {}): Remedy {
  return [what, all[what].replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ""))];
}

/** Says what to change about a code that needs no explanation; undefined for other codes. */
export function remedyOf(code: string): string | undefined {
  return Object.entries(ofCodes).find(([known]) => known === code)?.[1];
}
