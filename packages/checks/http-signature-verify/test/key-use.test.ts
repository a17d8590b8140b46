import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { channels } from "@countersign/core";
import { afterEach, describe, expect, test } from "@jest/globals";
import { importVerificationKey, keyUse, verifiedSignature } from "@countersign/http-signature-verify";
import type { KeyUseTable } from "../dist/key-use.js";
import { signRequest, type SigningPlan } from "@countersign/test-support/signers/independent-signer.ts";
import { servicePublicPem, strangerKey } from "@countersign/test-support/signers/test-keys.ts";
import { startPlatform, type Platform } from "./platform.ts";

let platform: Platform;
let uses: KeyUseTable | undefined;
afterEach(async () => {
  uses?.close();
  await platform.close();
});

const status = async (plan: SigningPlan = {}): Promise<number> =>
  (await platform.send(signRequest(plan))).status;
const keys = new Map(
  ["old", "new"].map((keyid) => [
    keyid,
    importVerificationKey(keyid, servicePublicPem, { subject: `tenant of ${keyid}` }),
  ]),
);

describe("keyUse", () => {
  test("tells which keys verify signatures, the last one first", async () => {
    let nowMs = 5_000_000;
    uses = keyUse({ clock: () => nowMs });
    platform = await startPlatform(undefined, { keys });
    expect(await status({ keyid: "old" })).toBe(200);
    nowMs += 2500;
    expect(await status({ keyid: "old" })).toBe(200);
    expect(await status({ keyid: "new" })).toBe(200);
    expect(uses.entries()).toEqual([
      { keyid: "new", subject: "tenant of new", count: 1, firstUsed: 5002, lastUsed: 5002 },
      { keyid: "old", subject: "tenant of old", count: 2, firstUsed: 5000, lastUsed: 5002 },
    ]);
    expect(verifiedSignature(platform.reached[0] as never)?.subject).toBe("tenant of old");
  });

  test("counts no signature that was not verified, and one whose request is refused for another reason", async () => {
    uses = keyUse();
    platform = await startPlatform(undefined, { keys });
    expect(await status({ keyid: "old", key: strangerKey })).toBe(401);
    expect(await status({ keyid: "unknown" })).toBe(401);
    expect(uses.entries()).toEqual([]);
    expect(await status({ keyid: "old", body: "{}", contentDigest: `sha-256=:${"A".repeat(43)}=:` })).toBe(
      401,
    );
    expect(uses.entries()).toMatchObject([{ keyid: "old", count: 1 }]);
  });

  test("is bounded, and forgets what was idle longest", async () => {
    uses = keyUse({ max: 1 });
    platform = await startPlatform(undefined, { keys });
    await status({ keyid: "old" });
    await status({ keyid: "new" });
    expect(uses.entries()).toMatchObject([{ keyid: "new" }]);
  });

  test("close ends the counting", async () => {
    uses = keyUse();
    uses.close();
    platform = await startPlatform(undefined, { keys });
    await status({ keyid: "old" });
    expect(uses.entries()).toEqual([]);
  });

  test("each use is an event", async () => {
    const events: unknown[] = [];
    const listener = (event: unknown): void => void events.push(event);
    subscribe(channels.keyUse.name, listener);
    platform = await startPlatform(undefined, { keys });
    const created = Math.floor(Date.now() / 1000);
    await status({ keyid: "old", created });
    unsubscribe(channels.keyUse.name, listener);
    await status({ keyid: "old" });
    expect(events).toEqual([{ keyid: "old", subject: "tenant of old", created }]);
  });
});

describe("httpSignatureVerify and the validity of keys", () => {
  const nowSeconds = Math.floor(Date.now() / 1000);
  test.each([
    ["out of its paths", { scope: { paths: ["/other/"] } }, "key-scope"],
    ["of another environment", { scope: { environment: "test" } }, "key-scope"],
    ["that is revoked", { revokedAt: nowSeconds - 1 }, "key-revoked"],
    ["that has ended", { notAfter: nowSeconds - 100 }, "key-retired"],
  ])("refuses a key %s as it refuses an unsigned request", async (_title, validity, code) => {
    const key = importVerificationKey("test-key", servicePublicPem, validity);
    platform = await startPlatform(undefined, { keys: () => key, environment: "live" });
    const unsigned = await platform.send({ ...signRequest(), headers: [] });
    const refused = await platform.send(signRequest());
    expect([refused.status, refused.body]).toEqual([401, unsigned.body]);
    expect(platform.codes.at(-1)).toBe(code);
  });

  test("takes a key in its scope", async () => {
    const scope = { paths: ["/api/"], environment: "live" };
    const key = importVerificationKey("test-key", servicePublicPem, { scope });
    platform = await startPlatform(undefined, { keys: () => key, environment: "live" });
    expect(await status()).toBe(200);
  });

  test("compares the path as it was signed, with the prefix that a proxy took off", async () => {
    const key = importVerificationKey("test-key", servicePublicPem, { scope: { paths: ["/pay/"] } });
    platform = await startPlatform(undefined, { keys: () => key, pathPrefix: "/pay" });
    const signed = signRequest({ path: "/pay/api/v1/transaction" });
    expect((await platform.send({ ...signed, path: "/api/v1/transaction" })).status).toBe(200);
  });

  test("reads its clock, not the system's, for revokedAt", async () => {
    const key = importVerificationKey("test-key", servicePublicPem, { revokedAt: nowSeconds + 1000 });
    platform = await startPlatform(undefined, { keys: () => key, clock: () => (nowSeconds + 1000) * 1000 });
    expect(await status({ created: nowSeconds + 990 })).toBe(401);
    expect(platform.codes).toEqual(["key-revoked"]);
  });
});
