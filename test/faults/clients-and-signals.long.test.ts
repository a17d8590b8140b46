// Rows 14 and 15: the client leaves, or the process is told to.
import { request } from "node:http";
import { expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { describeEngines, newKey } from "./engines.ts";
import { pay, payTo, payoutRequest, spawnPayer, startPayer } from "./payers.ts";
import { payUntilDecided } from "./timing.ts";

/** Sends a payout and returns the function that breaks its connection. */
function sendAndLeave(port: number, key: string): () => void {
  const { body, headers, method, path } = payoutRequest(key);
  const outgoing = request({ host: "127.0.0.1", port, method, path, agent: false });
  for (let index = 0; index < headers.length; index += 2) {
    outgoing.setHeader(String(headers[index]), String(headers[index + 1]));
  }
  outgoing.on("error", () => {});
  outgoing.end(body);
  return () => void outgoing.destroy();
}

describeEngines(["memory", "sqlite", "redis", "postgres"], (ground, kind) => {
  test("row 14, client disconnects in the handler, retry arrives: 1 pay; 503 then 409", async () => {
    const key = newKey();
    const payer = await startPayer({ engine: ground().engine }, { armed: ["handler"] });
    const leave = sendAndLeave(payer.port, key);
    await payer.reached("handler");
    leave();
    expect(await pay(payer, key)).toMatchObject({ status: 503, code: "in-flight" });
    payer.go("handler");
    expect((await payUntilDecided(payer, key)).at(-1)).toMatchObject({
      status: 409,
      code: "already-processed",
    });
    expect(await ground().payments(key)).toBe(1);
  });

  test("row 15, SIGTERM in the handler: drains: completes, then exits", async () => {
    const key = newKey();
    const config = { engine: ground().engine };
    const payer = await spawnPayer(config, { armed: ["handler"] });
    const { answer } = await payTo("handler", payer, key);
    payer.signal("SIGTERM");
    await payer.draining();
    await expect(pay(payer, newKey())).rejects.toMatchObject({
      code: expect.stringMatching(/^ECONN(?:REFUSED|RESET)$/),
    });
    payer.go("handler");
    expect(await answer).toMatchObject({ status: 200 });
    expect(await payer.exitCode).toBe(0);
    expect(await ground().payments(key)).toBe(1);
    if (kind === "memory") return;
    expect(await pay(await startPayer(config), key)).toMatchObject({
      status: 409,
      code: "already-processed",
    });
  });
});
