// Row 9: clocks that disagree.
import { randomUUID } from "node:crypto";
import { expect, test } from "@jest/globals";
import { send } from "../support/servers/http-client.ts";
import { describeEngines, newKey } from "./engines.ts";
import { pay, payTo, spawnPayer, type PayerProcess, type RunningPayer } from "./payers.ts";
import { expectOnePaymentAfterLease, expectRefusedFor, leaseMs } from "./timing.ts";

const tenMinutesMs = 600_000;

async function clockOf({ port }: RunningPayer): Promise<number> {
  const { body } = await send(port, { method: "GET", path: "/clock", headers: [], body: Buffer.alloc(0) });
  return (JSON.parse(body) as { nowMs: number }).nowMs;
}

async function useNonce({ port }: RunningPayer, nonce: string): Promise<string> {
  const headers = ["Token", randomUUID()];
  const { body } = await send(port, {
    method: "POST",
    path: `/nonces/${nonce}`,
    headers,
    body: Buffer.alloc(0),
  });
  return (JSON.parse(body) as { use: string }).use;
}

describeEngines(["sqlite", "redis", "postgres"], (ground) => {
  async function expectNoEffect(owner: PayerProcess, other: PayerProcess): Promise<void> {
    const finished = newKey();
    owner.arm("handler");
    const { answer } = await payTo("handler", owner, finished);
    await expectRefusedFor([owner, other], finished, leaseMs * 1.3);
    owner.go("handler");
    expect(await answer).toMatchObject({ status: 200 });
    expect(await pay(other, finished)).toMatchObject({ status: 409 });

    const nonce = randomUUID();
    expect([await useNonce(owner, nonce), await useNonce(other, nonce)]).toEqual(["fresh", "seen"]);

    const orphaned = newKey();
    owner.arm("handler");
    const { answer: orphan } = await payTo("handler", owner, orphaned);
    orphan.catch(() => {});
    const since = performance.now();
    await owner.kill();
    // Gives up far below ten minutes.
    await expectOnePaymentAfterLease(other, orphaned, since);
    expect([await ground().payments(finished), await ground().payments(orphaned)]).toEqual([1, 1]);
  }

  test.each([
    ["the owner's ahead", tenMinutesMs, 0],
    ["the other's ahead", 0, tenMinutesMs],
  ])("row 9, clocks of two processes 10 minutes apart, %s: no effect", async (_, ownerMs, otherMs) => {
    const config = { engine: ground().engine };
    const [owner, other] = await Promise.all([
      spawnPayer(config, { clockShiftMs: ownerMs }),
      spawnPayer(config, { clockShiftMs: otherMs }),
    ]);
    const apartMs = (await clockOf(owner)) - (await clockOf(other));
    expect(Math.abs(apartMs - (ownerMs - otherMs))).toBeLessThan(5_000);
    await expectNoEffect(owner, other);
  });
});
