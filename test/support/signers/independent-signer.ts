// A signer that shares no code with the packages: node:crypto and string concatenation, so that both sides stay honest.
import { createHash, randomUUID, sign, type KeyObject } from "node:crypto";
import { serviceKey } from "./test-keys.ts";

/** How to sign; every member can be made wrong on purpose. */
export interface SigningPlan {
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  readonly body?: string | Buffer | undefined;
  readonly contentType?: string | undefined;
  readonly contentDigest?: string | undefined;
  readonly key?: KeyObject | undefined;
  readonly label?: string | undefined;
  readonly created?: number | undefined;
  readonly lifetime?: number | undefined;
  readonly nonce?: string | undefined;
  readonly keyid?: string | undefined;
  /** Covered components with their values, in order; serialised as given. */
  readonly covered?: readonly (readonly [name: string, value: string])[] | undefined;
  /** Parameters with serialised values, in order; undefined leaves one out. */
  readonly parameters?: Readonly<Record<string, string | undefined>> | undefined;
  /** Order of the parameters; default that of the wire contract. */
  readonly parameterOrder?: readonly string[] | undefined;
}

/** A request ready to be sent: `headers` is a flat list of names and values. */
export interface SignedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
  readonly signatureBase: string;
}

export const samplePath = "/api/v1/transaction";

export function sha256Field(body: Buffer): string {
  return `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;
}

export function signRequest(plan: SigningPlan = {}): SignedRequest {
  const method = plan.method ?? "POST";
  const path = plan.path ?? samplePath;
  const body = Buffer.from(plan.body ?? '{"amount":{"value":"10.00"}}');
  const contentType = plan.contentType ?? "application/json";
  const contentDigest = plan.contentDigest ?? sha256Field(body);
  const label = plan.label ?? "sig1";
  const covered = plan.covered ?? [
    ['"@method"', method],
    ['"@path"', path.split("?")[0] ?? ""],
    ['"content-type"', contentType],
    ['"content-digest"', contentDigest],
  ];
  const signatureParams = `(${covered.map(([name]) => name).join(" ")})${parametersOf(plan)}`;
  const signatureBase = [...covered, ['"@signature-params"', signatureParams]]
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
  const signature = sign(null, Buffer.from(signatureBase), plan.key ?? serviceKey).toString("base64");
  const headers = [
    "Content-Type",
    contentType,
    "Content-Digest",
    contentDigest,
    "Signature-Input",
    `${label}=${signatureParams}`,
    "Signature",
    `${label}=:${signature}:`,
  ];
  return { method, path, headers, body, signatureBase };
}

function parametersOf(plan: SigningPlan): string {
  const created = plan.created ?? Math.floor(Date.now() / 1000);
  const values: Record<string, string | undefined> = {
    created: String(created),
    expires: String(created + (plan.lifetime ?? 60)),
    keyid: `"${plan.keyid ?? "test-key"}"`,
    alg: '"ed25519"',
    nonce: `"${plan.nonce ?? randomUUID()}"`,
    ...plan.parameters,
  };
  const order = plan.parameterOrder ?? Object.keys(values);
  return order.map((name) => (values[name] === undefined ? "" : `;${name}=${values[name]}`)).join("");
}

/** The headers with the value of one replaced by `change`, or left out when it returns undefined. */
export function withHeader(
  headers: readonly string[],
  name: string,
  change: (value: string) => string | undefined,
): string[] {
  const changed: string[] = [];
  for (let index = 0; index < headers.length; index += 2) {
    const [key = "", value = ""] = headers.slice(index, index + 2);
    const next = key.toLowerCase() === name.toLowerCase() ? change(value) : value;
    if (next !== undefined) changed.push(key, next);
  }
  return changed;
}
