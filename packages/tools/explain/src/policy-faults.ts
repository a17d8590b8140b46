import { componentText, derivedComponents } from "@countersign/http-message-signatures/door";
import {
  defaultComponents,
  type SignatureInput,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { isSigned, rightDraft } from "./draft.ts";
import { explanation, quoted, type Explanation, type Remedy } from "./explanation.ts";
import { nearest } from "./nearest.ts";
import { pace } from "./pace.ts";
import { explainParameter, isLike, timeFaults } from "./parameter-faults.ts";
import { remedyOf } from "./remedies.ts";
import { search } from "./search.ts";
import { baseOfMessage, textOf, type LabelledSignature, type SignatureContext } from "./signature-context.ts";

/** The refusals that are about the key of a signature. */
export function isKeyCode(code: string): boolean {
  return code === "key-unknown" || code === "alg-mismatch";
}

const maxKeys = 100;

/** An unknown keyid, or an algorithm that is not the key's: looks which known key has signed. */
export async function explainKey(
  context: SignatureContext,
  { signature }: LabelledSignature,
  base: string | undefined,
): Promise<Explanation & { readonly attempts: number }> {
  const { own, code } = context;
  const keys = base === undefined ? [] : [...own.keys.values()].slice(0, maxKeys);
  const { found, attempts } = await search({
    drafts: keys.map((key) => rightDraft(base ?? "", key, signature)),
    misses: [],
    fits: isSigned,
    maxAttempts: own.maxAttempts,
    pace,
  });
  const signer = found?.draft.key;
  const isUnknown = code === "key-unknown";
  const [what, sentence] = isUnknown ? otherKey(context, signer) : otherAlgorithm(context, signer);
  const known = [...own.keys.keys()].slice(0, 20).map(quoted).join(", ");
  const details = [
    known === "" ? "No other key was tried: the key store lists none." : `Known keyids: ${known}`,
  ];
  return { ...explanation(what, code, sentence, isUnknown ? details : []), attempts };
}

function otherKey({ own, input }: SignatureContext, signer: VerificationKey | undefined): Remedy {
  const keyid = textOf(input, "keyid") ?? "";
  if (signer !== undefined) {
    return [
      "keyid-other-name",
      `Send keyid=${quoted(signer.keyid)}: the signature fits that key, and none is known as ${quoted(keyid)}.`,
    ];
  }
  const near = nearest(keyid, [...own.keys.keys()]);
  return near === undefined
    ? [
        "key-unknown",
        `Send a keyid that was handed over, or hand over the public key of ${quoted(keyid)}: no key is known under it, and the signature fits none that is.`,
      ]
    : ["keyid-spelling", `Send keyid=${quoted(near)}: no key is known as ${quoted(keyid)}.`];
}

function otherAlgorithm(
  { own, check, input }: SignatureContext,
  signer: VerificationKey | undefined,
): Remedy {
  const received = textOf(input, "alg") ?? "";
  const key = own.keys.get(textOf(input, "keyid") ?? "") ?? signer;
  const taken = check.algorithms ?? ["ed25519"];
  const wanted = key?.alg ?? taken[0] ?? "ed25519";
  return key !== undefined && !taken.includes(key.alg)
    ? [
        "alg-not-taken",
        `Sign with a key of ${taken.join(" or ")}: the verifier takes no signature by ${key.alg}.`,
      ]
    : [
        "alg-other",
        `Send alg=${quoted(wanted)}, the algorithm of the key: Signature-Input has ${received === "" ? "none" : quoted(received)}.`,
      ];
}

/** The explanation of a refusal whose code says nearly all. */
export function explainPolicy(context: SignatureContext): Explanation {
  const { code = "" } = context;
  const [what, sentence] = (Object.hasOwn(byCode, code) ? byCode[code] : undefined)?.(context) ?? [
    code,
    remedyOf(code) ?? `Look up the refusal ${quoted(code)}: no usual mistake of a signer is behind it.`,
  ];
  return explanation(what, code, sentence);
}

type Component = SignatureInput["components"][number];

const byCode: Readonly<Record<string, (context: SignatureContext) => Remedy>> = {
  ...timeFaults,
  "alg-invalid": (context) =>
    explainParameter(context, "alg", 'a text in double quotes, such as alg="ed25519"'),
  "keyid-invalid": (context) =>
    explainParameter(context, "keyid", "a text in double quotes of 1 to 256 characters"),
  "nonce-invalid": (context) =>
    explainParameter(
      context,
      "nonce",
      "a text in double quotes of 1 to 128 characters, another one each time",
    ),
  "tag-invalid": (context) => explainParameter(context, "tag", "a text in double quotes"),
  "tag-mismatch": ({ input }) => [
    "tag-other",
    `Send the tag in Signature-Input that the verifier takes: it has ${quotedOr(textOf(input, "tag"))}.`,
  ],
  "parameter-forbidden": ({ check }) => [
    "parameter-forbidden",
    `Leave the parameters ${listed(check.forbiddenParameters)} out of Signature-Input.`,
  ],
  "component-required": explainRequired,
  "component-name-invalid": explainName,
  "component-unsupported": explainDerived,
  "component-duplicate": ({ input }) => {
    const texts = input?.components.map(componentText) ?? [];
    const repeated = input?.components.find((_, index) => texts.indexOf(texts[index] ?? "") < index);
    return ["component-duplicate", `Name each component of Signature-Input once${which(repeated)}`];
  },
  "component-parameter-unsupported": ({ input }) => {
    const advice = "Name components in Signature-Input without parameters that the message cannot have";
    return [
      "component-parameter",
      advice + which(input?.components.find(({ parameters }) => parameters.size > 0)),
    ];
  },
  "component-forbidden": ({ check }) => [
    "component-forbidden",
    `Leave ${listed(check.forbiddenComponents)} out of Signature-Input: it is not taken.`,
  ],
  "components-empty": ({ check }) => [
    "components-empty",
    `Cover ${listed(check.requiredComponents ?? defaultComponents)} in Signature-Input: its list is empty.`,
  ],
  "covered-field-missing": ofField("Send every field that Signature-Input names, unchanged by proxies"),
  "covered-field-repeated": ofField("Send each signed field of one value once"),
  "covered-field-invalid": ofField("Sign fields whose values are printable ASCII and well-formed"),
  "key-revoked": ({ input }) => [
    "key-revoked",
    `Sign with a key that is in use: ${quotedOr(textOf(input, "keyid"))} is revoked.`,
  ],
  "key-retired": ({ input }) => [
    "key-retired",
    `Sign with a key that is in use: ${quotedOr(textOf(input, "keyid"))} was not valid when the signature was created.`,
  ],
  "key-scope": ({ input }) => [
    "key-scope",
    `Sign with a key that is for this path and environment: ${quotedOr(textOf(input, "keyid"))} is not.`,
  ],
  "signature-malformed": () => [
    "signature-length",
    "Send the 64 bytes of an Ed25519 signature in Signature, in base64: it has another length.",
  ],
};

function which(component: Component | undefined): string {
  return component === undefined ? "." : `: look at ${quoted(componentText(component))}.`;
}

/** Names the field that keeps the base from being computed. */
function ofField(advice: string): (context: SignatureContext) => Remedy {
  return (context) => {
    const isUncomputable = (component: Component): boolean =>
      baseOfMessage(context, { components: [component], parameters: new Map() }) === undefined;
    return [context.code ?? "", advice + which(context.input?.components.find(isUncomputable))];
  };
}

function listed(names: readonly string[] = []): string {
  return names.map((name) => quoted(name)).join(", ");
}

function quotedOr(text: string | undefined): string {
  return text === undefined ? "none" : quoted(text);
}

function explainRequired({ check, input }: SignatureContext): Remedy {
  const required = check.requiredComponents ?? defaultComponents;
  const covered = (input?.components ?? []).map(componentText);
  const missing = required.filter((component) => !covered.includes(component));
  const [first = ""] = missing;
  const like = covered.find((component) => isLike(component, first.replaceAll(/[^a-z]/g, "")));
  return like === undefined
    ? ["component-required", `Cover ${listed(missing)} in Signature-Input: nothing signs it.`]
    : ["component-spelling", `Write ${quoted(first)} in Signature-Input where ${quoted(like)} stands.`];
}

function explainName({ input }: SignatureContext): Remedy {
  const bad = input?.components.find(({ name }) => !/^[!#$%&'*+\-.^_`|~0-9a-z@]+$/.test(name));
  const name = bad?.name ?? "";
  const lower = name.toLowerCase();
  return name === lower
    ? [
        "component-name",
        `Name fields in Signature-Input by their names alone: ${quoted(name)} is no field name.`,
      ]
    : [
        "component-letter-case",
        `Write ${quoted(lower)} in lower case in Signature-Input: it is there as ${quoted(name)}.`,
      ];
}

const derived: readonly string[] = [...derivedComponents, "@query-param"];

function explainDerived({ input }: SignatureContext): Remedy {
  const unknown = input?.components.find(({ name }) => name.startsWith("@") && !derived.includes(name));
  const name = unknown?.name;
  switch (name) {
    case "@signature-params":
      return [
        "component-signature-params",
        'Leave "@signature-params" out of the list of Signature-Input: it is signed without being named.',
      ];
    case "@status":
      return ["component-of-response", 'Leave "@status" out of Signature-Input: a request has none.'];
    case undefined:
      return ["component-unknown", 'Give "@query-param" the parameter name in Signature-Input.'];
    default: {
      const near = nearest(name, derived);
      const advice = near === undefined ? "" : ` Write ${quoted(near)}.`;
      return [
        "component-unknown",
        `Name components in Signature-Input that RFC 9421 has: ${quoted(name)} is none of them.${advice}`,
      ];
    }
  }
}
