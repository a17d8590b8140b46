import {
  guardChannel,
  onTraceEnd,
  traces,
  type GuardEvent,
  type PublishedEvents,
  type ReceivedRequest,
} from "@countersign/core";
import {
  cachedKeys,
  httpSignatureVerifier,
  importVerificationKey,
  memoryNonceStore,
  verifyHttpSignature,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";
import { afterEach, describe, expect, test } from "@jest/globals";
import { signRequest } from "@countersign/test-support/signers/independent-signer.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { startPlatform } from "./platform.ts";

const key = importVerificationKey("test-key", servicePublicPem);
const ends: (() => unknown)[] = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

type Keys = HttpSignatureVerifyOptions["keys"];

async function verify(keys: Keys, storeTimeoutMs = 2_000): Promise<unknown> {
  const { method, path: target, headers: rawHeaders, body } = signRequest();
  const request: ReceivedRequest = {
    method,
    target,
    rawHeaders,
    scheme: "https",
    clientAddress: undefined,
    body: async () => body,
  };
  try {
    return (await verifyHttpSignature(request, { keys, nonces: memoryNonceStore(), storeTimeoutMs })).keyid;
  } catch (error) {
    return Object(error).code;
  }
}

function listen(): string[] {
  const told: string[] = [];
  const tell = ({ engine, step, outcome }: PublishedEvents["store"]): void => {
    if (step === "get-key") told.push(`${engine} ${outcome}`);
  };
  ends.push(onTraceEnd(traces.store, tell));
  return told;
}

describe("a key that is looked up", () => {
  test.each<[string, Keys, string[]]>([
    ["by a function", () => key, ["other ok"]],
    ["by a function that answers later", async () => key, ["other ok"]],
    ["in a store", { get: () => key }, ["other ok"]],
    ["in a store that says what it is", { engine: "postgresql", get: async () => key }, ["postgresql ok"]],
    ["behind a cache", cachedKeys({ engine: "postgresql", get: async () => key }), ["postgresql ok"]],
    ["behind a cache of a function", cachedKeys(() => key), ["other ok"]],
    ["among those that are configured", { "test-key": servicePublicPem }, []],
  ])("is told of as a call of a store: %s", async (_name, keys, expected) => {
    const told = listen();
    expect(await verify(keys)).toBe("test-key");
    expect(told).toEqual(expected);
  });

  test("in vain is told of with how it failed", async () => {
    const told = listen();
    const fail = (): never => {
      throw new Error("no connection");
    };
    expect(await verify({ get: () => undefined })).toBe("key-unknown");
    expect(await verify({ get: fail })).toBe("key-store-unavailable");
    expect(await verify({ get: async () => fail() })).toBe("key-store-unavailable");
    expect(await verify({ get: () => new Promise(() => undefined) }, 20)).toBe("key-store-unavailable");
    expect(told).toEqual(["other ok", "other error", "other error", "other timeout"]);
  });

  test("is asked for once, by the store's own answer, whoever looks", async () => {
    let asked = 0;
    const get = (): typeof key => {
      asked += 1;
      return key;
    };
    await verify({ get });
    listen();
    await verify({ get });
    expect(asked).toBe(2);
  });

  test("counts as time in which a store was waited for", async () => {
    const events: GuardEvent[] = [];
    const hear = (event: unknown): void => void events.push(event as GuardEvent);
    guardChannel.subscribe(hear);
    ends.push(() => guardChannel.unsubscribe(hear));
    const slow = async (): Promise<typeof key> => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return key;
    };
    const nonces = { claim: () => "fresh" as const };
    const platform = await startPlatform(undefined, { keys: slow, nonces });
    await platform.send(signRequest());
    await platform.close();
    const event = events.find(({ guard }) => guard === "httpSignatureVerify");
    expect(event?.storeMs).toBeGreaterThan(25);
  });

  test("in a store whose name is no word is refused", () => {
    const keys = { engine: 1, get: () => key } as never;
    expect(() => httpSignatureVerifier({ keys, nonces: memoryNonceStore() })).toThrow(/option keys\.engine/);
  });
});
