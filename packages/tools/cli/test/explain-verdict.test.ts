import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { signByHand } from "../../../endpoints/payout/test/sign-by-hand.ts";
import {
  InspectorBench,
  payoutPath,
  payoutText,
  seeded,
  signer,
} from "../../inspector/test/inspector-bench.ts";
import { run, type Run } from "./cli-bench.ts";

const bench = new InspectorBench();
beforeEach(() => bench.open({ kept: 2 }));
afterEach(() => bench.close());

const unseen = "00000000-0000-4000-8000-000000000000";
const explain = (verdict: string, ...flags: string[]): Promise<Run> =>
  run(["explain", "--verdict", verdict, "--inspector", bench.inspector.pageUrl, ...flags]);

async function refusedVerdict(): Promise<string> {
  const body = payoutText("key-1");
  const headers = { ...signByHand(signer, { path: payoutPath, body, method: "post" }) };
  await bench.pay("key-1", { body, headers });
  const { verdicts } = (await bench.newest()) as { verdicts: { id: string }[] };
  return verdicts.at(-1)?.id ?? "";
}

describe("countersign explain --verdict", () => {
  test("prints what the signer has to change, the base and the verdicts", async () => {
    const id = await refusedVerdict();
    const { code, out, err } = await explain(`urn:uuid:${id}`);
    expect([code, err]).toEqual([1, ""]);
    expect(out.split("\n")[0]).toMatch(/^POST \/api\/v1\/transaction: reject, answered 401 \(request 1, /);
    expect(out).toContain('\nhttpSignatureVerify: Sign "@method" as "POST"');
    expect(out).toContain("  code    signature-mismatch\n");
    expect(out).toContain('    "@method": POST\\n');
    expect(out).toMatch(/ {2}pass {4}ipAllowlist .* ms\n/);
    expect(out).toMatch(
      / {2}reject {2}httpSignatureVerify +[\d.]+ ms {2}signature-mismatch {2}<- this one\n/,
    );
  });

  test("ends with 0 for a request that was admitted, and says what its key is now", async () => {
    await bench.pay("key-1");
    const { verdicts } = (await bench.newest()) as { verdicts: { id: string }[] };
    const { code, out } = await explain(verdicts[0]?.id ?? "");
    expect(code).toBe(0);
    expect(out).toContain("its key now: Do not send it again");
  });

  test("prints the whole request as JSON, without secrets", async () => {
    const id = await refusedVerdict();
    const { code, out } = await explain(id.toUpperCase(), "--json");
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      request: { id: 1, outcome: "reject", explanations: [{ guard: "httpSignatureVerify" }] },
    });
    expect(out).not.toContain(seeded.secret);
  });

  test("says in one line why there is nothing to explain", async () => {
    const id = await refusedVerdict();
    const { pageUrl, url } = bench.inspector;
    const ask = (inspector: string, verdict = id): Promise<Run> =>
      run(["explain", "--verdict", verdict, "--inspector", inspector]);
    expect(await ask(pageUrl, unseen)).toEqual({
      code: 1,
      out: "",
      err: "error: the inspector has not seen a verdict of this id: it is of another process, or of an earlier start\n",
    });
    await bench.pay("key-2");
    await bench.pay("key-3");
    expect(await ask(pageUrl)).toMatchObject({
      code: 1,
      err: expect.stringContaining("raise its option kept"),
    });
    expect(await ask(`${url}/#token=wrong`)).toMatchObject({
      code: 1,
      err: expect.stringContaining("the token is that of another start"),
    });
    await bench.inspector.close();
    expect(await ask(pageUrl)).toMatchObject({
      code: 3,
      err: expect.stringMatching(
        /^error: no inspector answers at http:\/\/127\.0\.0\.1:\d+: the platform does not run/,
      ),
    });
  });

  test.each<[string, number, string]>([
    ["another server", 200, "{}"],
    ["what is no JSON", 200, "<html>"],
    ["an error without a code", 500, "{}"],
  ])("says of %s that it is no inspector", async (_name, status, body) => {
    const server: Server = createServer((_req, res) => res.writeHead(status).end(body)).listen(
      0,
      "127.0.0.1",
    );
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const { code, err } = await run([
      "explain",
      "--verdict",
      unseen,
      "--inspector",
      `http://127.0.0.1:${port}/#token=t`,
    ]);
    server.close();
    expect([code, err]).toEqual([
      1,
      `error: what answers there is no inspector (status ${status}); check --inspector\n`,
    ]);
  });

  test.each<[string, readonly string[], string]>([
    ["no address", ["--verdict", unseen], "--verdict and --inspector go together"],
    ["no verdict", ["--inspector", "http://127.0.0.1:1/#token=t"], "--verdict and --inspector go together"],
    [
      "what is no id",
      ["--verdict", "12", "--inspector", "http://127.0.0.1:1/#token=t"],
      "--verdict: expected",
    ],
    [
      "an address without a token",
      ["--verdict", unseen, "--inspector", "http://127.0.0.1:1/"],
      "--inspector: expected",
    ],
    [
      "another machine",
      ["--verdict", unseen, "--inspector", "http://192.0.2.1:1/#token=t"],
      "--inspector: expected",
    ],
    [
      "a host that looks like this one",
      ["--verdict", unseen, "--inspector", "http://127.0.0.1.example:1/#token=t"],
      "--inspector: expected",
    ],
    [
      "a file too",
      ["request.http", "--verdict", unseen, "--inspector", "http://127.0.0.1:1/#token=t"],
      "give no file",
    ],
    [
      "a key too",
      ["--key", "a=b", "--verdict", unseen, "--inspector", "http://127.0.0.1:1/#token=t"],
      "give no file",
    ],
  ])("refuses %s", async (_name, flags, named) => {
    const { code, err } = await run(["explain", ...flags]);
    expect(code).toBe(2);
    expect(err).toContain(named);
    expect(err).not.toContain("token=t");
  });
});
