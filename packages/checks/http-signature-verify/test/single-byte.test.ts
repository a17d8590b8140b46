import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { signRequest, type SignedRequest } from "@countersign/test-support/signers/independent-signer.ts";
import { startPlatform, type Platform } from "./platform.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.close());

const flip = (text: string, index: number): string => {
  const code = text.charCodeAt(index);
  // The neighbour in printable ASCII: never a control character, which the HTTP parser would refuse first.
  return text.slice(0, index) + String.fromCharCode(code === 0x7e ? 0x7d : code + 1) + text.slice(index + 1);
};

const signed = signRequest({ body: '{"amount":{"value":"10.00","currency":"EUR"},"name":"A. Payee"}' });

const headerRows = [0, 2, 4, 6].flatMap((name) =>
  Array.from(signed.headers[name + 1] ?? "", (_character, index): [string, number, number] => [
    signed.headers[name] ?? "",
    index,
    name + 1,
  ]),
);

async function sendChanged(change: (request: SignedRequest) => Partial<SignedRequest>): Promise<number> {
  return (await platform.send({ ...signed, ...change(signed) })).status;
}

test("every single-byte change of a signed header is 401, and none of them uses the nonce up", async () => {
  const accepted: string[] = [];
  for (const [name, index, position] of headerRows) {
    const headers = [...signed.headers];
    headers[position] = flip(headers[position] ?? "", index);
    if (headers[position] === signed.headers[position]) throw new Error("nothing was changed");
    const status = await sendChanged(() => ({ headers }));
    if (status !== 401) accepted.push(`${name} at ${index}: ${status}`);
  }
  expect(accepted).toEqual([]);
});

test("every single-byte change of the body is 401", async () => {
  const statuses = new Set<number>();
  for (let index = 0; index < signed.body.length; index++) {
    const body = Buffer.from(signed.body);
    body.writeUInt8((body[index] ?? 0) ^ 1, index);
    statuses.add(await sendChanged(() => ({ body })));
  }
  expect([...statuses]).toEqual([401]);
});

test("another method of the same length is 401", async () => {
  expect(await sendChanged(() => ({ method: "LOCK" }))).toBe(401);
});

test("the unchanged request is still accepted after all of them", async () => {
  expect(await sendChanged(() => ({}))).toBe(200);
});
