import type { ReceivedRequest } from "@countersign/core";
import { askApp, createWarnOnce, readOptions, type OptionOwner } from "@countersign/core/internal";
import {
  MessageSignatureError,
  type ReceivedSignature,
  type RequestMessage,
} from "@countersign/http-message-signatures";
import {
  listSignatures,
  parseSignatures,
  pickSignature,
  type UnverifiedSignature,
} from "@countersign/http-message-signatures/internal";
import { assertPolicy, coverageWarner, profileRules, type ProfileOptions } from "./profile.ts";
import { policyUnknown, policyUnusable } from "./refusals.ts";

/** What the signatures of one partner have to meet. A member that is absent is that of the options beside `policy`. */
export type SignaturePolicy = ProfileOptions;

/**
 * Returns the policy of a signature; undefined or null for a partner that is not known, which is 401. A throw, a rejection, a late or an
 * unusable answer is 503.
 */
export type PolicyLookup = (
  signature: UnverifiedSignature,
) => SignaturePolicy | null | undefined | Promise<SignaturePolicy | null | undefined>;

/** What a policy is completed by. */
export type PolicyBase = Parameters<typeof assertPolicy>[1] &
  Parameters<typeof coverageWarner>[0] & {
    readonly policy: PolicyLookup | undefined;
    readonly storeTimeoutMs: number;
  };

/** The policies of one verifier. */
export interface PolicyReader<Options> {
  /** The policy as options; a policy object is read once. Throws an OptionError for one that is not sound. */
  resolve(this: void, policy: unknown): ResolvedPolicy<Options>;
}

interface ResolvedPolicy<Options> {
  readonly options: Options;
  /** Warns once of a policy that leaves much unsigned. */
  readonly warnOfCoverage: ((request: ReceivedRequest) => void) | undefined;
}

export function policyReader<Base extends PolicyBase>(
  base: Base,
  given: ProfileOptions,
  owner: OptionOwner,
): PolicyReader<Base> {
  const known = new WeakMap<object, ResolvedPolicy<Base>>();
  const warnOnce = createWarnOnce("httpSignatureVerify");
  const common = definedOf(given, Object.keys(profileRules));
  const read = (policy: object): ResolvedPolicy<Base> => {
    const profile = readOptions(owner, profileRules, { ...common, ...definedOf(policy) });
    const options = { ...base, ...profile };
    assertPolicy(owner, options);
    return { options, warnOfCoverage: coverageWarner(options, warnOnce) };
  };
  return {
    resolve(policy) {
      // A list or a text would be read as a policy without members: the defaults.
      if (typeof policy !== "object" || policy === null || Array.isArray(policy)) {
        readOptions(owner, profileRules, policy);
        throw new TypeError("httpSignatureVerify: option policy returned no policy");
      }
      const earlier = known.get(policy);
      if (earlier !== undefined) return earlier;
      const fresh = read(policy);
      known.set(policy, fresh);
      return fresh;
    },
  };
}

// A record of a database may hold undefined for what it leaves open, which must not undo a common option.
function definedOf(options: object, names: readonly string[] = Object.keys(options)): ProfileOptions {
  const entries = names.map((name): [string, unknown] => [name, Reflect.get(options, name)]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

export interface PickedSignature<Options> {
  readonly received: ReceivedSignature;
  readonly options: Options;
  /** False where no policy is known: the signature is verified by a key of nobody, so that the time of the answer does not tell. */
  readonly hasPolicy: boolean;
}

/**
 * Asks for the policy of each signature, at most four, and picks the one signature that meets its own. Rejects with a GuardError: 503
 * without a usable answer, 401 where no policy is known; with a MessageSignatureError for none or several.
 */
export async function pickByPolicy<Base extends PolicyBase>(
  request: ReceivedRequest,
  message: RequestMessage,
  { base, policies }: { readonly base: Base; readonly policies: PolicyReader<Base> },
): Promise<PickedSignature<Base>> {
  const { policy: lookUp, storeTimeoutMs: timeoutMs } = base;
  if (lookUp === undefined) throw new TypeError("there is no option policy");
  const parsed = parseSignatures(message);
  const asked = { name: "option policy", timeoutMs, failure: policyUnusable };
  const found = await Promise.all(
    listSignatures(parsed).map(async (signature) => {
      const answer = await askApp(asked, () => lookUp(Object.freeze(signature)));
      return [signature.label, answer ?? undefined] as const;
    }),
  );
  const byLabel = new Map<string, ResolvedPolicy<Base>>();
  for (const [label, policy] of found) {
    if (policy !== undefined) byLabel.set(label, resolved(policies, policy));
  }
  if (byLabel.size === 0 && found.length > 0) {
    try {
      return { received: pickSignature(parsed, () => base), options: base, hasPolicy: false };
    } catch (error) {
      throw error instanceof MessageSignatureError ? policyUnknown(error) : error;
    }
  }
  // Without a well-formed signature the options say what is wrong with it.
  const profileOf = (label: string): Base | undefined =>
    found.length === 0 ? base : byLabel.get(label)?.options;
  const received = pickSignature(parsed, profileOf);
  const { options, warnOfCoverage } = byLabel.get(received.label) ?? {
    options: base,
    warnOfCoverage: undefined,
  };
  warnOfCoverage?.(request);
  return { received, options, hasPolicy: byLabel.has(received.label) };
}

function resolved<Options>(policies: PolicyReader<Options>, policy: unknown): ResolvedPolicy<Options> {
  try {
    return policies.resolve(policy);
  } catch (error) {
    throw policyUnusable(error);
  }
}
