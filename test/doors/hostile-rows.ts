// What no verifier may let in, of a policy that asks for components with parameters; and beside it what it has to let in.
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import { hostileSignatures } from "../support/signers/hostile-signatures.ts";
import { unavailable } from "./answers.ts";
import { algorithmRows } from "./hostile-algorithm-rows.ts";
import { bodyRows } from "./hostile-body-rows.ts";
import { componentRows } from "./hostile-component-rows.ts";
import { severalRows } from "./hostile-several-rows.ts";
import { targetRows } from "./hostile-target-rows.ts";
import { policyScene, signOrder, unauthorized, type OrderPlan } from "./policy-scene.ts";
import type { Row } from "./row.ts";

const scene = policyScene();

// What the query of an order makes of the rows that all signatures have.
const otherwise: Readonly<Record<string, string>> = {
  "a query that nothing signs": "covered-field-missing",
  "an empty query that nothing signs": "covered-field-missing",
  "another case of the path": "covered-field-missing",
  "a slash at the end of the path": "covered-field-missing",
};
const absolute = { fetch: { why: "the URL of a Request is absolute anyway", answer: "unsendable" } } as const;

const signatures = hostileSignatures(signOrder).map(([title, code, request]): Row => ({
  title,
  scene,
  request,
  answer: unauthorized,
  code: otherwise[title] ?? code,
  except: {
    ...(title === "an absolute-form target" && absolute),
    ...(title === "Content-Type twice" && {
      fetch: { why: "Headers has merged the lines", answer: unauthorized, code: "signature-mismatch" },
    }),
  },
}));

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
      {},
      "query-not-covered",
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
    [
      "a key store that gives what is no key",
      { keys: () => Object({ kty: "OKP" }) },
      "key-store-unavailable",
    ],
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

export const hostileRows: readonly Row[] = [
  ...signatures,
  ...componentRows,
  ...severalRows,
  ...algorithmRows,
  ...targetRows,
  ...bodyRows,
  ...policies,
  ...stores,
];
