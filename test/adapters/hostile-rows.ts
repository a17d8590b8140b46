// Requests to a policy with components of every kind, where adapters could differ: the lines, the target, the body, several policies, the
// stores. Signatures that none may take are rows of the payout; components, algorithms and keys are vectors, which every adapter runs.
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import { unavailable } from "./answers.ts";
import { bodyRows } from "./hostile-body-rows.ts";
import { componentRows } from "./hostile-component-rows.ts";
import { severalRows } from "./hostile-several-rows.ts";
import { targetRows } from "./hostile-target-rows.ts";
import { samplePath } from "../support/signers/independent-signer.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { accepted, policyScene, signOrder, unauthorized, type OrderPlan } from "./policy-scene.ts";
import type { Row } from "./row.ts";

const policies = (
  [
    [
      "a parameter that is forbidden",
      { forbiddenParameters: ["x"] },
      { parameters: { x: "1" } },
      "parameter-forbidden",
    ],
    [
      "a component that is forbidden with whatever parameters",
      { forbiddenComponents: ["x-more"] },
      {
        further: [['"x-more";bs', ":YQ==:"]],
        lines: ["X-Items", "a=1, b=(2 3);x", "X-Raw", "a, caf\u00e9", "X-More", "a"],
      },
      "component-forbidden",
    ],
    [
      "a tag that is excluded",
      { tag: { exclude: ["other"] } },
      { parameters: { tag: '"other"' } },
      "tag-mismatch",
    ],
    [
      "a tag other than is required",
      { tag: { require: "order" } },
      { parameters: { tag: '"Order"' } },
      "tag-mismatch",
    ],
    ["no tag where one is required", { requiredParameters: ["keyid", "created", "tag"] }, {}, "tag-invalid"],
    ["another label than the one that counts", { label: "order" }, {}, "signature-missing"],
    [
      "a query of which one parameter alone is signed",
      { allowUnsignedQuery: false },
      { path: `${samplePath}?id=7&amount=8` },
      "query-not-covered",
    ],
    [
      "a query of which each parameter is signed, with an empty pair",
      { allowUnsignedQuery: false },
      { path: `${samplePath}?id=7&` },
      "query-not-covered",
    ],
    [
      "a query that is required and signed in part",
      { requiredComponents: ["@query"] },
      { path: `${samplePath}?id=7&amount=8` },
      "component-required",
    ],
    [
      "a query with a required parameter twice, signed as a whole",
      {},
      {
        path: `${samplePath}?id=7&id=8`,
        instead: { '"@query-param";name="id"': undefined },
        further: [['"@query"', "?id=7&id=8"]],
      },
      "component-required",
    ],
    [
      "a query without the required parameter, signed as a whole",
      {},
      {
        path: `${samplePath}?amount=8`,
        instead: { '"@query-param";name="id"': undefined },
        further: [['"@query"', "?amount=8"]],
      },
      "component-required",
    ],
    [
      "a path that is required and not signed",
      {},
      { instead: { '"@path"': undefined } },
      "component-required",
    ],
    [
      "an authority that is required and not signed",
      { requiredComponents: ["@authority"], origin: "https://pay.example" },
      { further: [['"@request-target"', `${samplePath}?id=7`]] },
      "component-required",
    ],
    ["a longer window than the policy's", { windowSeconds: 10 }, {}, "window-too-long"],
    [
      "an algorithm that the policy does not take",
      { algorithms: ["ecdsa-p256-sha256"], keys: () => undefined },
      {},
      "alg-mismatch",
    ],
    ["a nonce that was seen", { nonces: { claim: () => "seen" } }, {}, "nonce-replayed"],
    ["a keyid for which the store says null", { keys: () => null }, {}, "key-unknown"],
  ] satisfies readonly (readonly [string, Partial<HttpSignatureVerifyOptions>, OrderPlan, string])[]
).map(([title, change, plan, code]): Row => ({
  title,
  scene: policyScene(change),
  request: () => signOrder(plan),
  answer: unauthorized,
  code,
}));

const down = (): never => {
  throw new Error("down");
};
const late = (): Promise<never> => new Promise(() => {});
const stores = (
  [
    ["a key store that throws", { keys: down }, "key-store-unavailable"],
    ["a key store that never answers", { keys: late, storeTimeoutMs: 20 }, "key-store-unavailable"],
    ["a key store that gives what is no key", { keys: () => Object({ kty: "OKP" }) }, "key-unusable"],
    ["a nonce store that throws", { nonces: { claim: down } }, "nonce-store-unavailable"],
    [
      "a nonce store that never answers",
      { nonces: { claim: late }, storeTimeoutMs: 20 },
      "nonce-store-unavailable",
    ],
  ] satisfies readonly (readonly [string, Partial<HttpSignatureVerifyOptions>, string])[]
).map(([title, change, code]): Row => ({
  title,
  scene: policyScene(change),
  request: () => signOrder(),
  answer: unavailable(),
  code,
}));

/** What a store or a function of the app decides for each partner, at every adapter. */
const partners = (
  [
    ["a key store that gives a PEM", { keys: () => servicePublicPem }],
    ["a policy for the partner", { policy: async () => ({ windowSeconds: 60 }) }],
    ["no policy for the partner", { policy: () => undefined }, "policy-unknown"],
    [
      "a policy that asks for another component",
      { policy: () => ({ requiredComponents: ["x-absent"] }) },
      "component-required",
    ],
    ["a policy that throws", { policy: down }, "policy-unusable"],
    ["a policy that never answers", { policy: late, storeTimeoutMs: 20 }, "policy-unusable"],
    ["a policy that cannot be used", { policy: () => ({ windowSeconds: 0 }) }, "policy-unusable"],
  ] as const
).map(([title, change, code]): Row => {
  const answer = code === undefined ? accepted : code === "policy-unusable" ? unavailable() : unauthorized;
  const row = { title, scene: policyScene(change), request: () => signOrder(), answer };
  return code === undefined ? row : { ...row, code };
});

export const hostileRows: readonly Row[] = [
  ...componentRows,
  ...severalRows,
  ...targetRows,
  ...bodyRows,
  ...policies,
  ...stores,
  ...partners,
];
