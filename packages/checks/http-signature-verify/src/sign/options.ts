import {
  limitRule,
  option,
  optionError,
  systemClock,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import { componentIdentifiers, receiptComponents } from "@countersign/http-message-signatures/internal";
import { signatureAlgorithms, type Signer } from "@countersign/http-message-signatures";
import { isKey, textRule } from "../profile.ts";

const isShortText = (text: string): boolean => /^[\x20-\x7e]{1,256}$/.test(text);

export interface SignResponseOptions {
  /** `createSigner(key, keyid)`, or an object of your own that asks a KMS or HSM. */
  readonly signer: Signer;
  /** More components: bare response fields, which the answer must then have, or full identifiers (`"x-request-id";req`). Default none. */
  readonly components?: readonly string[] | undefined;
  /** The label in Signature-Input and Signature. Default `receipt`. */
  readonly label?: string | undefined;
  /** The parameter `tag`, the name of the application or protocol (RFC 9421 section 2.3). Default none. */
  readonly tag?: string | undefined;
  /** Largest body of an answer, in bytes or like `"1mb"`; a larger one is 500, unless it is not signed. Default 1 MB. */
  readonly limit?: number | string | undefined;
  /** How long the signer may take, in milliseconds, before the answer is 503. Default 2,000. */
  readonly signTimeoutMs?: number | undefined;
  /** The time in milliseconds since 1970, like Date.now. */
  readonly clock?: (() => number) | undefined;
}

export const table = {
  signer: option.own(readSigner),
  components: option.own(readComponents, "none"),
  label: textRule("a lower-case dictionary key such as receipt", isKey, "receipt"),
  tag: option.optional(textRule("1 to 256 printable ASCII characters", isShortText)),
  limit: limitRule("1mb"),
  signTimeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2000 }),
  clock: option.clock(systemClock, "Date.now"),
} satisfies OptionTable<SignResponseOptions, unknown>;

export type ResolvedSignOptions = ReadOptions<typeof table>;

function readSigner(signer: unknown, owner: OptionOwner, name: string): Signer {
  if (isSigner(signer)) return signer;
  const algorithms = signatureAlgorithms.map((alg) => JSON.stringify(alg)).join(" or ");
  const expected = `{ alg: ${algorithms}, keyid, sign(data) }, such as createSigner(key, keyid)`;
  throw optionError(owner, name, expected, signer);
}

function isSigner(value: unknown): value is Signer {
  if (typeof value !== "object" || value === null) return false;
  const { alg, keyid, sign }: { alg?: unknown; keyid?: unknown; sign?: unknown } = value;
  const isText = typeof keyid === "string" && isShortText(keyid);
  return isText && typeof sign === "function" && signatureAlgorithms.some((known) => known === alg);
}

function readComponents(components: unknown = [], owner: OptionOwner, name: string): readonly string[] {
  if (Array.isArray(components) && areFurther(components)) {
    return components.map((component) => componentIdentifiers.textOf(componentIdentifiers.parse(component)));
  }
  const expected = "a list of components of a response that no receipt has by itself";
  throw optionError(owner, name, expected, components);
}

function areFurther(components: readonly unknown[]): components is readonly string[] {
  const request = { method: "POST", target: "/", rawHeaders: ["Content-Digest", ""] };
  const answer = { status: 200, rawHeaders: ["Content-Type", ""], request };
  const all = [...receiptComponents(answer, "sig1"), ...components];
  try {
    componentIdentifiers.assertComputable(
      all.map((component) => componentIdentifiers.parse(String(component))),
      answer,
    );
    return components.every((component) => typeof component === "string");
  } catch {
    return false;
  }
}
