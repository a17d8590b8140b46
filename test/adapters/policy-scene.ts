import { memoryNonceStore, type HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import {
  samplePath,
  sha256Field,
  signRequest,
  type SignedRequest,
  type SigningPlan,
} from "../support/signers/independent-signer.ts";
import type { WireRequest } from "../support/servers/http-client.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { problem, type ExactAnswer } from "./answers.ts";
import { handlerType, letIn, type PolicyScene } from "./scene.ts";

export type Covered = NonNullable<SigningPlan["covered"]>;

/** What every adapter answers to a request that is let in. */
export const accepted: ExactAnswer = {
  status: 200,
  headers: { "content-type": handlerType },
  body: letIn,
};

export const unauthorized: ExactAnswer = problem(401);

const ordered = '{"order":7}';

/** Components with parameters, as an order has them: with the lines that {@link signOrder} sends. */
export const orderComponents: Covered = [
  ['"@query-param";name="id"', "7"],
  ['"x-items";sf', "a=1, b=(2 3);x"],
  ['"x-items";key="b"', "(2 3);x"],
  ['"x-raw";bs', ":YSwgY2Fm6Q==:"],
];
export const orderLines: readonly string[] = ["X-Items", "a=1,  b=( 2  3 );x=?1", "X-Raw", "a, caf\u00e9"];

/** The policy of the rows: components of each kind that has parameters, and a body. */
export const orderPolicy = (): HttpSignatureVerifyOptions => ({
  keys: { "test-key": servicePublicPem },
  nonces: memoryNonceStore({ max: 100 }),
  requiredComponents: [
    "@method",
    "@path",
    "content-type",
    "content-digest",
    ...orderComponents.map(([identifier]) => identifier),
  ],
  fieldTypes: { "x-items": "dictionary" },
  allowUnsignedQuery: true,
  limit: "4kb",
});

/** An app of which every path is behind the policy, or several, each with changes. */
export function policyScene(...changes: readonly Partial<HttpSignatureVerifyOptions>[]): () => PolicyScene {
  return () => ({
    kind: "policy",
    path: samplePath,
    policies: (changes.length === 0 ? [{}] : changes).map((change) => ({ ...orderPolicy(), ...change })),
    trace: { codes: [], ran: 0 },
  });
}

/** What an order is signed with beyond a signing plan. */
export interface OrderPlan extends SigningPlan {
  readonly further?: Covered | undefined;
  /** Values that are signed in the place of the right ones; undefined does not cover the component. */
  readonly instead?: Readonly<Record<string, string | undefined>> | undefined;
  /** In the place of {@link orderLines}. */
  readonly lines?: readonly string[] | undefined;
}

/** An order as {@link orderPolicy} asks for it, or one that differs by what the plan says. */
export function signOrder({ further = [], instead = {}, lines, ...plan }: OrderPlan = {}): SignedRequest {
  const path = withId(plan.path ?? samplePath);
  const body = Buffer.from(plan.body ?? ordered);
  const four: Covered = [
    ['"@method"', plan.method ?? "POST"],
    ['"@path"', path.split("?")[0] ?? ""],
    ['"content-type"', plan.contentType ?? "application/json"],
    ['"content-digest"', plan.contentDigest ?? sha256Field(body)],
  ];
  const covered = [...(plan.covered ?? four), ...orderComponents, ...further]
    .filter(([identifier]) => !(identifier in instead) || instead[identifier] !== undefined)
    .map(([identifier, value]) => [identifier, instead[identifier] ?? value] as const);
  // Who covers nothing covers nothing of an order either.
  const isBare = plan.covered?.length === 0;
  const signed = signRequest({ ...plan, path, body, covered: isBare ? [] : covered });
  return { ...signed, headers: [...signed.headers, ...(lines ?? orderLines)] };
}

export function withLines(request: WireRequest, ...lines: readonly string[]): WireRequest {
  return { ...request, headers: [...request.headers, ...lines] };
}

function withId(path: string): string {
  return /[?#]/.test(path) ? path : `${path}?id=7`;
}
