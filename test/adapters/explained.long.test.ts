import { guardChannel, type GuardEvent } from "@countersign/core";
import { refusalExplainer } from "@countersign/cli/explain";
import { describe, expect, test } from "@jest/globals";
import express5 from "express";
import express4 from "express4";
import { eventually } from "../support/runs/eventually.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { expressAdapter } from "./express-adapter.ts";
import { fastifyAdapter } from "./fastify-adapter.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { fetchAdapter } from "./fetch-adapter.ts";
import { nodeAdapter } from "./node-adapter.ts";
import { payoutScene, payoutText, signPayout } from "./payout-scene.ts";
import { orderPolicy, policyScene, signOrder } from "./policy-scene.ts";
import type { Adapter, Scene } from "./scene.ts";
import type { WireRequest } from "../support/servers/http-client.ts";

const adapters = [
  expressAdapter("express 5", express5),
  expressAdapter("express 4", express4),
  nodeAdapter,
  fastifyAdapter,
  fetchAdapter,
  fetchBehindNode,
];

async function explained(
  adapter: Adapter,
  scene: Scene,
  wire: WireRequest,
  policy: Partial<Parameters<typeof refusalExplainer>[0]> = {},
): Promise<string[]> {
  const all: string[] = [];
  const explain = refusalExplainer({ keys: { "test-key": servicePublicPem }, ...policy });
  const hear = async (event: unknown): Promise<void> => {
    const sentence = await explain(event as GuardEvent);
    if (sentence !== undefined) all.push(sentence);
  };
  guardChannel.subscribe(hear);
  const { send, close } = await adapter.open(scene);
  try {
    await send(wire);
    await eventually(() => all.length > 0);
  } finally {
    guardChannel.unsubscribe(hear);
    await close();
  }
  return all;
}

describe.each(adapters)("a signature that the adapter $name has refused", (adapter) => {
  test("is explained by method, target and fields", async () => {
    const wire = { ...signPayout({ method: "PUT" }), method: "POST" };
    expect(await explained(adapter, payoutScene()(), wire)).toEqual([
      'Sign "@method" as "POST": the signature fits with "PUT", another method.',
    ]);
  });

  test("is explained where a check stands alone", async () => {
    const { path, ...order } = signOrder();
    const wire = { ...order, path: path.replace("id=7", "id=8") };
    const { fieldTypes, requiredComponents = [], allowUnsignedQuery } = orderPolicy();
    const policy = { fieldTypes, requiredComponents, allowUnsignedQuery };
    const [first] = await explained(adapter, policyScene()(), wire, policy);
    // Said only where the base can be computed, with its "@query-param".
    expect(first).toMatch(/ signature base.* under the key "test-key"/);
  });

  test("is explained by its body where that was read", async () => {
    const wire = { ...signPayout({ body: `${payoutText}\n` }), body: Buffer.from(payoutText) };
    expect(await explained(adapter, payoutScene()(), wire)).toEqual([
      expect.stringContaining("it is the SHA-256 digest of the body with a line feed after it"),
    ]);
  });
});
