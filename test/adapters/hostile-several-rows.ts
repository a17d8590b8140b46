// Two signatures that are both due: of the caller, and of who approved the order. Labels say nothing, tags do.
import { memoryNonceStore, type HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import { createPublicKey } from "node:crypto";
import type { WireRequest } from "../support/servers/http-client.ts";
import { serviceKey, servicePublicPem, strangerKey } from "../support/signers/test-keys.ts";
import { accepted, policyScene, signOrder, unauthorized, type OrderPlan } from "./policy-scene.ts";
import type { Row } from "./row.ts";

const approverPem = createPublicKey(strangerKey).export({ type: "spki", format: "pem" }).toString();
const byTag = (require: string, pem: string): Partial<HttpSignatureVerifyOptions> => ({
  keys: { "test-key": pem },
  nonces: memoryNonceStore({ max: 100 }),
  requiredParameters: ["created", "expires", "keyid", "alg", "nonce", "tag"],
  tag: { require },
});
const scene: Row["scene"] = () =>
  policyScene(byTag("order", servicePublicPem), byTag("approval", approverPem))();

const caller = (plan: OrderPlan = {}): OrderPlan => ({
  label: "a",
  key: serviceKey,
  ...plan,
  parameters: { tag: '"order"', ...plan.parameters },
});
const approver = (plan: OrderPlan = {}): OrderPlan => ({
  label: "b",
  key: strangerKey,
  ...plan,
  parameters: { tag: '"approval"', ...plan.parameters },
});

/** One order with the signatures of all plans, each in lines of its own. */
function together(first: OrderPlan, ...others: readonly OrderPlan[]): WireRequest {
  const request = signOrder(first);
  const signatures = others.flatMap((plan) => signOrder(plan).headers.slice(4, 8));
  return { ...request, headers: [...request.headers, ...signatures] };
}

const past = Math.floor(Date.now() / 1000) - 600;
const foreign = (label: string): OrderPlan => approver({ label, parameters: { tag: '"other"' } });

const cases: readonly (readonly [title: string, code: string | undefined, request: () => WireRequest])[] = [
  ["both signatures", undefined, () => together(caller(), approver())],
  [
    "both signatures with labels exchanged",
    undefined,
    () => together(caller({ label: "b" }), approver({ label: "a" })),
  ],
  [
    "both signatures beside two of others",
    undefined,
    () => together(caller(), approver(), foreign("c"), foreign("d")),
  ],
  ["one signature of two", "tag-mismatch", () => together(caller())],
  [
    "one signature twice",
    "signature-ambiguous",
    () => together(caller(), caller({ label: "c" }), approver()),
  ],
  [
    "two signatures by one key",
    "signature-mismatch",
    () => together(caller(), approver({ key: serviceKey })),
  ],
  [
    "two signatures by exchanged keys",
    "signature-mismatch",
    () => together(caller({ key: strangerKey }), approver({ key: serviceKey })),
  ],
  [
    "a second signature that is over",
    "signature-expired",
    () => together(caller(), approver({ created: past })),
  ],
  [
    "a second signature that covers less",
    "component-required",
    () => together(approver({ instead: { '"x-raw";bs': undefined } }), caller()),
  ],
  [
    "a second signature of another order",
    "signature-mismatch",
    () =>
      together(
        caller(),
        approver({ path: "/api/v1/transaction?id=8", instead: { '"@query-param";name="id"': "8" } }),
      ),
  ],
  [
    "five signatures",
    "field-limit",
    () => together(caller(), approver(), foreign("c"), foreign("d"), foreign("e")),
  ],
];

export const severalRows: readonly Row[] = cases.map(([title, code, request]) => ({
  title,
  scene,
  request,
  answer: code === undefined ? accepted : unauthorized,
  ...(code !== undefined && { code }),
}));
