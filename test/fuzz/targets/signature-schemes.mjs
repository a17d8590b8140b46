// verifyPayload by a scheme: one line of Stripe-Signature, accepted only when it is a list with one time that is fresh and a MAC of
// that time and the body.
import { createHmac } from "node:crypto";
import { isGuardError } from "@countersign/core";
import { verifyPayload } from "@countersign/webhook-hmac";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";

const body = Buffer.from('{"id":"evt_1"}');
const secrets = ["the first secret of this test", "the second secret of this test"];
const now = 1_700_000_000;
const mac = (time, secret) => createHmac("sha256", secret).update(`${time}.`).update(body).digest("hex");
const right = secrets.map((secret) => mac(now, secret));
const early = mac(now + 301, secrets[0]);

export const seeds = [
  `t=${now},v1=${right[0]}`,
  `v1=${right[1]},t=${now}`,
  `t=${now},v0=${right[0]},v1=${mac(now, "of nobody")},v1=${right[1].toUpperCase()}`,
  ` \tt=${now},v1=${right[0]}\t `,
  `t=${now + 301},v1=${early}`,
  `t=${now - 300},v1=${mac(now - 300, secrets[0])}`,
  `t=${now},v1=${mac(now, "of nobody")},${right[1]}`,
  `v1=${mac(now, "of nobody")},t=${now},${right[1]}`,
  `t=${now},t=${now},v1=${right[0]}`,
  "",
];
export const maxLength = 400;
export const dictionary = [
  ...right.map((one) => `v1=${one}`),
  ...right.map((one) => `,${one}`),
  `v1=${early}`,
  `t=${now}`,
  `t=${now}000`,
  `t=0${now}`,
  `t=${now + 301}`,
  ", ",
  " ",
  "\t",
  "\n",
  "\xa0",
  ...Array(3).fill(",v1=".repeat(8)),
  ...words`
    t= v1= v0= , = NaN -
  `,
];

const isOneOf = (text, letters) => text !== "" && [...text].every((letter) => letters.includes(letter));
const digits = "0123456789";

/** The position of the secret, or undefined. */
function readReference(line) {
  let [from, to] = [0, line.length];
  while (from < to && " \t".includes(line[from])) from += 1;
  while (to > from && " \t".includes(line[to - 1])) to -= 1;
  const times = [];
  const macs = [];
  let entries = 0;
  let isListed = false;
  for (const entry of line.slice(from, to).split(",")) {
    entries += 1;
    if (entry === "" || [...entry].some((letter) => letter <= " " || letter > "~")) return undefined;
    if (entry.slice(0, 2) === "t=") times.push(entry.slice(2));
    const isNamed = entry.slice(0, 3) === "v1=";
    const hex = entry.slice(isNamed ? 3 : 0).toLowerCase();
    const isMac = hex.length === 64 && isOneOf(hex, `${digits}abcdef`);
    if (isNamed && !isMac) return undefined;
    isListed = isMac && (isNamed || isListed);
    if (isListed) macs.push(hex);
  }
  const [time] = times;
  if (entries > 16 || times.length !== 1 || !isOneOf(time, digits) || String(Number(time)) !== time)
    return undefined;
  if (time.length > 12 || Math.abs(Number(time) - now) > 300) return undefined;
  const found = secrets.findIndex((secret) => macs.includes(mac(time, secret)));
  return found === -1 ? undefined : found;
}

export function run(input) {
  const line = input.toString("latin1");
  const options = { scheme: "stripe", clock: () => now * 1000 };
  const { value: verified, error } = attempt(() => verifyPayload(body, line, secrets, options));
  const expected = readReference(line);
  if (error !== undefined) {
    assertProperty(isGuardError(error) && error.status === 401, "a refusal is a GuardError with 401", {
      error,
    });
    assertSame(expected, undefined, "a signature that is right is accepted");
    return error.code;
  }
  assertSame(
    verified.secretIndex,
    expected,
    "only a right signature is accepted, by the position of its secret",
  );
  assertProperty(Math.abs(verified.timestampSeconds - now) <= 300, "its time is fresh", { line });
  return `secret ${expected}`;
}
