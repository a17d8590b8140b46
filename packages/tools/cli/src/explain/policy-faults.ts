import { nearest } from "@countersign/core/internal";
import {
  componentIdentifiers,
  derivedComponents,
  isCovered,
} from "@countersign/http-message-signatures/internal";
import {
  defaultComponents,
  type RequestMessage,
  type SignatureInput,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { isSigned, rightDraft } from "./draft.ts";
import { explanation, quoted, type Explanation, type Remedy } from "./explanation.ts";
import { plain } from "./missing-signature.ts";
import { pace } from "./pace.ts";
import { explainParameter, isLike, timeFaults } from "./parameter-faults.ts";
import { remedy, remedyOf, type Told } from "./remedies.ts";
import { search } from "./search.ts";
import { baseOfMessage, textOf, type LabelledSignature, type SignatureContext } from "./signature-context.ts";

export function isKeyCode(code: string): boolean {
  return code === "key-unknown" || code === "alg-mismatch";
}

const maxKeys = 100;

/** Explains an unknown keyid or a wrong algorithm by the known key that has signed. */
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
  if (code !== "key-unknown") return { ...explanation(otherAlgorithm(context, signer), code), attempts };
  const known = [...own.keys.keys()].slice(0, 20).map(quoted).join(", ");
  const detail =
    known === "" ? "No other key was tried: the key store lists none." : `Known keyids: ${known}`;
  return { ...explanation(otherKey(context, signer), code, [detail]), attempts };
}

function otherKey({ own, input }: SignatureContext, signer: VerificationKey | undefined): Remedy {
  const text = textOf(input, "keyid") ?? "";
  const keyid = quoted(text);
  if (signer !== undefined) return remedy("keyid-other-name", { keyid, signer: quoted(signer.keyid) });
  const near = nearest(text, [...own.keys.keys()]);
  return near === undefined
    ? remedy("key-unknown", { keyid })
    : remedy("keyid-spelling", { keyid, near: quoted(near) });
}

function otherAlgorithm(
  { own, check, input }: SignatureContext,
  signer: VerificationKey | undefined,
): Remedy {
  const key = own.keys.get(textOf(input, "keyid") ?? "") ?? signer;
  const taken = check.algorithms ?? ["ed25519"];
  if (key !== undefined && !taken.includes(key.alg)) {
    return remedy("alg-not-taken", { taken: taken.join(" or "), alg: key.alg });
  }
  const wanted = quoted(key?.alg ?? taken[0] ?? "ed25519");
  return remedy("alg-other", { wanted, alg: quotedOr(textOf(input, "alg") || undefined) });
}

export function explainPolicy(context: SignatureContext): Explanation {
  const { code = "" } = context;
  const explain = Object.hasOwn(byCode, code) ? byCode[code] : undefined;
  const unknown = `Look up the refusal ${quoted(code)}: no usual mistake of a signer explains it.`;
  return explanation(explain?.(context) ?? [code, remedyOf(code) ?? unknown], code);
}

type Component = SignatureInput["components"][number];
type Explain = (context: SignatureContext) => Remedy;

const inQuotes = "a text in double quotes";
const parameter =
  (name: string, form: string): Explain =>
  (context) =>
    explainParameter(context, name, form);

const byCode: Readonly<Record<string, Explain>> = {
  ...timeFaults,
  "alg-invalid": parameter("alg", `${inQuotes}, such as alg="ed25519"`),
  "keyid-invalid": parameter("keyid", `${inQuotes} of 1 to 256 characters`),
  "nonce-invalid": parameter("nonce", `${inQuotes} of 1 to 128 characters, another one each time`),
  "tag-invalid": parameter("tag", inQuotes),
  "tag-mismatch": ({ input }) => remedy("tag-other", { tag: quotedOr(textOf(input, "tag")) }),
  "parameter-forbidden": ({ check }) =>
    remedy("parameter-forbidden", { forbidden: listed(check.forbiddenParameters) }),
  "component-required": explainRequired,
  "component-name-invalid": explainName,
  "component-unsupported": explainDerived,
  "component-duplicate": ({ input }) => {
    const texts = input?.components.map(componentIdentifiers.textOf) ?? [];
    const repeated = input?.components.find((_, index) => texts.indexOf(texts[index] ?? "") < index);
    return remedy("component-duplicate", { which: which(repeated) });
  },
  "component-parameter-unsupported": ({ input }) =>
    remedy("component-parameter", {
      which: which(input?.components.find(({ parameters }) => parameters.size > 0)),
    }),
  "component-forbidden": ({ check }) =>
    remedy("component-forbidden", { forbidden: listed(check.forbiddenComponents) }),
  "components-empty": ({ check }) =>
    remedy("components-empty", { required: listed(check.requiredComponents ?? defaultComponents) }),
  "covered-field-missing": uncomputable("covered-field-missing"),
  "covered-field-repeated": uncomputable("covered-field-repeated"),
  "covered-field-invalid": uncomputable("covered-field-invalid"),
  "key-revoked": ofKey("key-revoked"),
  "key-retired": ofKey("key-retired"),
  "key-scope": ofKey("key-scope"),
  "signature-malformed": () => remedy("signature-length"),
};

function ofKey(what: Told): Explain {
  return ({ input }) => remedy(what, { keyid: quotedOr(textOf(input, "keyid")) });
}

function uncomputable(what: Told): Explain {
  return (context) => {
    const isUncomputable = (component: Component): boolean =>
      baseOfMessage(context, { components: [component], parameters: new Map() }) === undefined;
    return remedy(what, { which: which(context.input?.components.find(isUncomputable)) });
  };
}

function which(component: Component | undefined): string {
  return component === undefined ? "." : `: look at ${quoted(componentIdentifiers.textOf(component))}.`;
}

function listed(names: readonly string[] = []): string {
  return names.map((name) => quoted(name)).join(", ");
}

function quotedOr(text: string | undefined): string {
  return text === undefined ? "none" : quoted(text);
}

function explainRequired({ check, input, request }: SignatureContext): Remedy {
  const required = check.requiredComponents ?? defaultComponents;
  const covered = (input?.components ?? []).map(componentIdentifiers.textOf);
  const missing = required.filter((component) => !isCoveredBy(covered, component, request));
  const [first = ""] = missing;
  const like = covered.find((component) => isLike(component, plain(first)));
  return like === undefined
    ? remedy("component-required", { missing: listed(missing) })
    : remedy("component-spelling", { wanted: quoted(first), name: quoted(like) });
}

function isCoveredBy(covered: readonly string[], required: string, request: RequestMessage): boolean {
  try {
    return isCovered(required, new Set(covered), request);
  } catch {
    // The query cannot be read, so no component of its parameters covers it.
    return false;
  }
}

function explainName({ input }: SignatureContext): Remedy {
  const bad = input?.components.find(({ name }) => !/^[!#$%&'*+\-.^_`|~0-9a-z@]+$/.test(name));
  const name = bad?.name ?? "";
  const lower = name.toLowerCase();
  return name === lower
    ? remedy("component-name", { name: quoted(name) })
    : remedy("component-letter-case", { wanted: quoted(lower), name: quoted(name) });
}

const derived: readonly string[] = [...derivedComponents, "@query-param"];

function explainDerived({ input }: SignatureContext): Remedy {
  const unknown = input?.components.find(({ name }) => name.startsWith("@") && !derived.includes(name));
  const name = unknown?.name;
  if (name === undefined) {
    return ["component-unknown", 'Give "@query-param" the parameter name in Signature-Input.'];
  }
  if (name === "@signature-params") return remedy("component-signature-params");
  if (name === "@status") return remedy("component-of-response");
  const near = nearest(name, derived);
  const advice = near === undefined ? "" : ` Write ${quoted(near)}.`;
  return remedy("component-unknown", { name: quoted(name), advice });
}
