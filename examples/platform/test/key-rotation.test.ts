import { randomUUID } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, test } from "@jest/globals";
import { openKeys, readSettings, SettingError } from "@countersign/example-settings";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { payoutBody, runPlatform, type RunningPlatform } from "./running-platform.ts";
import { makeTestKey } from "./signer.ts";

let platform: RunningPlatform | undefined;
afterEach(async () => {
  await platform?.end();
  platform = undefined;
});

interface InspectedKeys {
  readonly accepted: readonly string[];
  readonly used: readonly { readonly keyid: string; readonly count: number }[];
}

async function inspectKeys(): Promise<InspectedKeys> {
  const response = await fetch(`${platform?.url}/inspect/keys`);
  return (await response.json()) as InspectedKeys;
}

const accepts = (...keyids: string[]): Promise<void> =>
  eventually(async () => (await inspectKeys()).accepted.toString() === keyids.toString());

describe("the keys of a running platform", () => {
  test("follow a directory: a new key is taken, an old one refused, without a restart", async () => {
    const keys = mkdtempSync(path.join(tmpdir(), "platform-rotation-"));
    const [old, next] = [makeTestKey("old"), makeTestKey("next")];
    writeFileSync(path.join(keys, "old.pem"), old.publicKeyPem);
    platform = await runPlatform({ PAYOUT_KEYS: keys });
    try {
      const pay = async (key: typeof old): Promise<number | undefined> =>
        (await platform?.send(payoutBody(`${randomUUID()}.f.b`), { key }))?.status;
      expect([await pay(old), await pay(next)]).toEqual([200, 401]);
      writeFileSync(path.join(keys, "next.pem.new"), next.publicKeyPem);
      renameSync(path.join(keys, "next.pem.new"), path.join(keys, "next.pem"));
      await eventually(async () => (await inspectKeys()).accepted.length === 2);
      expect([await pay(old), await pay(next)]).toEqual([200, 200]);
      unlinkSync(path.join(keys, "old.pem"));
      await accepts("next");
      expect([await pay(old), await pay(next)]).toEqual([401, 200]);
      expect((await inspectKeys()).used).toMatchObject([
        { keyid: "next", count: 2 },
        { keyid: "old", count: 2 },
      ]);
    } finally {
      rmSync(keys, { recursive: true });
    }
  });

  test("are asked for at the start", async () => {
    const settings = readSettings({ PAYOUT_KEYS: "http://127.0.0.1:1/jwks.json" });
    await expect(openKeys(settings.keys)).rejects.toThrow(SettingError);
  });
});
