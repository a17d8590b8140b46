import type { KeyObject } from "node:crypto";
import type { SignatureAlgorithm, VerificationEngine } from "./algorithms/algorithm.ts";
import { ed25519SignatureLength } from "./algorithms/ed25519.ts";
import { algorithms } from "./algorithms/registry.ts";
import { MessageValues } from "./components.ts";
import { MessageSignatureError } from "./message-signature-error.ts";
import { collectFieldLines, combinedFieldValue, type FieldLines, type Message } from "./message.ts";
import {
  buildSignatureBase,
  componentText,
  parseByteSequenceDictionary,
  parseSignatureInput,
  type SignatureInput,
} from "./signature-base.ts";
import {
  assertTimely,
  readSignatureParameters,
  signatureIdentity,
  type SignatureParameters,
  type SignatureProfile,
} from "./signature-parameters.ts";
import {
  isVerificationKey,
  validityFault,
  type Fault,
  type KeyContext,
  type VerificationKey,
} from "./verification-key.ts";

/** The one signature of a message that fits a profile. Nothing of it is verified yet. */
export interface ReceivedSignature extends SignatureParameters {
  readonly label: string;
  /** The algorithms that the profile takes: without `alg`, that of the key has to be one of them. */
  readonly algorithms: readonly SignatureAlgorithm[];
  /** The covered components in their order: bare names, or full identifiers such as `"content-digest";req`. */
  readonly coveredComponents: readonly string[];
  readonly input: SignatureInput;
  readonly signature: Uint8Array;
  readonly values: MessageValues;
}

/** The signatures of a message, parsed and not yet held against a profile. */
export interface ParsedSignatures {
  readonly message: Message;
  readonly fields: FieldLines;
  /** By label, of labels that are in both fields. */
  readonly signatures: ReadonlyMap<string, ParsedSignature>;
}

interface ParsedSignature {
  readonly input: SignatureInput;
  readonly signature: Uint8Array;
}

/** What a signature says of itself. Nothing of it is verified; the label never is, since nothing signs it. */
export interface UnverifiedSignature {
  readonly label: string;
  readonly keyid: string;
  readonly tag: string | undefined;
}

/** Picks the one signature that fits the profile (RFC 9421 section 1.1), unverified. Throws a MessageSignatureError for none or several. */
export function readSignature(message: Message, profile: SignatureProfile): ReceivedSignature {
  return pickSignature(parseSignatures(message), () => profile);
}

/** Parses Signature-Input and Signature. Throws a MessageSignatureError. */
export function parseSignatures(message: Message): ParsedSignatures {
  const fields = collectFieldLines(message.rawHeaders);
  const inputField = combinedFieldValue(fields.get("signature-input"));
  const signatureField = combinedFieldValue(fields.get("signature"));
  if (inputField === undefined || signatureField === undefined) {
    throw new MessageSignatureError("signature-missing", "Signature-Input or Signature is missing");
  }
  const inputs = parseSignatureInput(inputField);
  const values = parseByteSequenceDictionary(signatureField, "Signature");
  const signatures = new Map<string, ParsedSignature>();
  for (const [label, input] of inputs) {
    const signature = values.get(label);
    if (signature !== undefined) signatures.set(label, { input, signature });
  }
  return { message, fields, signatures };
}

/** Lists the signatures whose keyid and tag are well-formed: at most four. */
export function listSignatures({ signatures }: ParsedSignatures): readonly UnverifiedSignature[] {
  const listed: UnverifiedSignature[] = [];
  for (const [label, { input }] of signatures) {
    const identity = signatureIdentity(input);
    if (identity !== undefined) listed.push({ label, ...identity });
  }
  return listed;
}

/**
 * Picks the one signature that fits the profile of its label, unverified; one whose label has no profile is passed over. Throws a
 * MessageSignatureError for none or several.
 */
export function pickSignature(
  { message, fields, signatures }: ParsedSignatures,
  profileOf: (label: string) => SignatureProfile | undefined,
): ReceivedSignature {
  let fitting: ReceivedSignature | undefined;
  let misfit: MessageSignatureError | undefined;
  for (const [label, { input, signature }] of signatures) {
    const profile = profileOf(label);
    if (profile === undefined || (profile.label !== undefined && label !== profile.label)) continue;
    try {
      const parameters = readSignatureParameters(input, profile, message);
      if (fitting !== undefined) {
        throw new MessageSignatureError("signature-ambiguous", "more than one signature fits the profile");
      }
      // Member by member: spreading costs more than parsing does.
      fitting = {
        label,
        keyid: parameters.keyid,
        alg: parameters.alg,
        created: parameters.created,
        expires: parameters.expires,
        nonce: parameters.nonce,
        tag: parameters.tag,
        algorithms: profile.algorithms,
        coveredComponents: input.components.map(componentText),
        input,
        signature,
        values: new MessageValues(message, fields, profile.fieldTypes),
      };
    } catch (error) {
      if (!(error instanceof MessageSignatureError) || error.code === "signature-ambiguous") throw error;
      misfit ??= error;
    }
  }
  if (fitting === undefined) {
    throw misfit ?? new MessageSignatureError("signature-missing", "no label to read is in both fields");
  }
  if (fitting.alg === "ed25519" && fitting.signature.length !== ed25519SignatureLength) {
    const what = `the signature is not ${ed25519SignatureLength} bytes long`;
    throw new MessageSignatureError("signature-malformed", what);
  }
  return fitting;
}

export interface VerifyOptions extends SignatureProfile, KeyContext {
  /** The key of a keyid; undefined or null when it is unknown. Called at most once. */
  readonly keys: (keyid: string) => VerificationKey | null | undefined;
  readonly engine?: VerificationEngine | undefined;
}

/**
 * Verifies a message's signature (RFC 9421 section 3.2): form, coverage, window, key, bytes. The caller still has to compare Content-Digest
 * with the body and to claim the nonce. Throws a MessageSignatureError.
 */
export function verify(message: Message, options: VerifyOptions): ReceivedSignature {
  const received = readSignature(message, options);
  const { now = Date.now() / 1000, environment } = options;
  assertTimely(received, options, now);
  verifySignature(received, options.keys(received.keyid), options.engine, { now, environment });
  return received;
}

/**
 * Verifies several signatures (RFC 9421 section 3.2.1), each by its own profile, which picks exactly one. `all`: each profile has a
 * signature of its own. `any`: at least one has. Returns the verified ones in profile order; throws the first MessageSignatureError.
 */
export function verifySignatures(
  message: Message,
  profiles: readonly VerifyOptions[],
  need: "all" | "any" = "all",
): readonly ReceivedSignature[] {
  if (profiles.length === 0) throw new TypeError("verifySignatures: no profile is given");
  const verified: ReceivedSignature[] = [];
  let misfit: MessageSignatureError | undefined;
  for (const profile of profiles) {
    try {
      verified.push(verify(message, profile));
    } catch (error) {
      if (need === "all" || !(error instanceof MessageSignatureError)) throw error;
      // Two that fit one profile are no sign that the next one will do.
      if (error.code === "signature-ambiguous") throw error;
      misfit ??= error;
    }
  }
  if (need === "all" && new Set(verified.map(({ label }) => label)).size < profiles.length) {
    throw new MessageSignatureError("signature-ambiguous", "one signature fits two of the profiles");
  }
  if (verified.length === 0 && misfit !== undefined) throw misfit;
  return verified;
}

/**
 * The last step of {@link verify}, for callers that fetch keys asynchronously. Throws a MessageSignatureError: `key-unknown`,
 * `key-mismatch`, `key-revoked`, `key-retired`, `key-scope`, `alg-mismatch`, `signature-mismatch`, or a component's code.
 */
export function verifySignature(
  received: ReceivedSignature,
  key: VerificationKey | null | undefined,
  engine: VerificationEngine = "native",
  context: KeyContext = {},
): void {
  const { fault, usable, base } = prepare(received, key, context);
  const { verify: verifyBytes } = algorithms[usable.alg];
  conclude(fault, verifyBytes(usable.publicKey, base, received.signature, engine));
}

/** As {@link verifySignature} with the native engine, but the work is done on libuv's thread pool. Rejects where that one throws. */
export async function verifySignatureAsync(
  received: ReceivedSignature,
  key: VerificationKey | null | undefined,
  context: KeyContext = {},
): Promise<void> {
  const { fault, usable, base } = prepare(received, key, context);
  const { verifyAsync } = algorithms[usable.alg];
  conclude(fault, await verifyAsync(usable.publicKey, base, received.signature));
}

interface Preparation {
  readonly fault: Fault | undefined;
  readonly usable: { readonly alg: SignatureAlgorithm; readonly publicKey: KeyObject };
  readonly base: Buffer;
}

function prepare(
  received: ReceivedSignature,
  key: VerificationKey | null | undefined,
  context: KeyContext,
): Preparation {
  const fault = keyFault(received, key, context);
  // Everything in a base is ASCII: strings, identifiers and covered values were checked.
  const base = Buffer.from(buildSignatureBase(received.values, received.input), "latin1");
  // An unknown keyid costs one verification too, by the algorithm that a known one would, so that the time of an answer does not
  // tell which keyids exist. Made at the first request of any kind, whose time would tell otherwise.
  const { alg = received.algorithms[0] ?? "ed25519" } = received;
  const publicKey = decoyKey(alg);
  const usable = fault === undefined && key !== undefined && key !== null ? key : { alg, publicKey };
  return { fault, usable, base };
}

/** Whether `signature` is one of `data` under the key, for diagnosis. Checks no form, window or validity: admit no request by it. */
export function isSignatureOf(key: VerificationKey, data: Uint8Array, signature: Uint8Array): boolean {
  return isVerificationKey(key) && algorithms[key.alg].verify(key.publicKey, data, signature, "native");
}

const decoys = new Map<SignatureAlgorithm, KeyObject>();

/** A key of nobody, made at the first call, and kept. */
export function decoyKey(alg: SignatureAlgorithm): KeyObject {
  const made = decoys.get(alg);
  if (made !== undefined) return made;
  const decoy = algorithms[alg].makeDecoy();
  decoys.set(alg, decoy);
  return decoy;
}

const mismatch: Fault = { code: "signature-mismatch", message: "the signature does not match the request" };

// One error is made, in one place: its stack costs as much for an unknown keyid as for a known one.
function conclude(keyIsAtFault: Fault | undefined, matches: boolean): void {
  const fault = keyIsAtFault ?? (matches ? undefined : mismatch);
  if (fault !== undefined) throw new MessageSignatureError(fault.code, fault.message);
}

function keyFault(
  { keyid, alg, algorithms: taken, created, values }: ReceivedSignature,
  key: VerificationKey | null | undefined,
  context: KeyContext,
): Fault | undefined {
  // Databases say null for what they do not have.
  if (key === undefined || key === null) {
    return { code: "key-unknown", message: "no key is known under this keyid" };
  }
  // A record that was never vetted could hold a key of small order, under which anybody can sign.
  if (!isVerificationKey(key)) {
    return { code: "key-mismatch", message: "the key is not one of importVerificationKey" };
  }
  if (key.keyid !== keyid) {
    return { code: "key-mismatch", message: "the key store returned the key of another keyid" };
  }
  // Without alg the algorithm is the key's, as always; it still has to be one that the profile takes.
  if (alg === undefined ? !taken.includes(key.alg) : key.alg !== alg) {
    return { code: "alg-mismatch", message: "alg, or the profile, does not have the key's algorithm" };
  }
  return validityFault(key, { created, path: values.target?.path }, context);
}
