import { createHash, sign as signBytes } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import { expect, test } from "@jest/globals";
import { sign, verify, type RequestMessage } from "@countersign/http-message-signatures";
import * as fc from "fast-check";
import { verifyEd25519 } from "../src/algorithms/ed25519.ts";
import { L, signWith, smallOrderEncodings, torsion, withS } from "./forgery.ts";
import { key, now, privateKey, strict, verdictOf } from "./hand-signer.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const characters = (text: string): fc.Arbitrary<string> => fc.constantFrom(...text.split(""));
const printable = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code));
const letters = "abcdefghijklmnopqrstuvwxyz";
const visible = Array.from({ length: 94 }, (_, index) => String.fromCharCode(0x21 + index)).join("");

const method = fc.string({ unit: characters(`${letters.toUpperCase()}-_!`), minLength: 1, maxLength: 8 });
const segment = fc
  .string({ unit: characters(`${letters}0123456789-_~:@!$&'()*+,;=`), maxLength: 8 })
  .map((text) => `x${text}`);
const path = fc.array(segment, { maxLength: 4 }).map((parts) => `/${parts.join("/")}`);
const query = fc.option(
  fc.string({ unit: characters(visible.replace(/[#\\]/g, "")), maxLength: 12 }).map((text) => `?${text}`),
  { nil: "" },
);
const headerName = fc
  .string({
    unit: characters(`${letters}${letters.toUpperCase()}0123456789-_.!`),
    minLength: 1,
    maxLength: 10,
  })
  .map((name) => `X-${name}`);
const headerValue = fc.string({ unit: printable, maxLength: 30 });
const headers = fc.array(fc.tuple(headerName, headerValue), { maxLength: 6 });

interface Signed {
  readonly message: RequestMessage;
  readonly names: readonly string[];
  readonly fields: {
    readonly signatureInput: string;
    readonly signature: string;
    readonly signatureBase: string;
  };
}

const signed: fc.Arbitrary<Signed> = fc
  .record({
    method,
    path,
    query,
    headers,
    seconds: fc.integer({ min: 1, max: 60 }),
    nonce: fc.string({ unit: printable, minLength: 1, maxLength: 20 }),
  })
  .map(({ method: verb, path: pathname, query: search, headers: lines, seconds, nonce }) => {
    const digest = `sha-256=:${createHash("sha256").update(pathname).digest("base64")}:`;
    const rawHeaders = ["Content-Type", "application/json", "Content-Digest", digest, ...lines.flat()];
    const names = [...new Set(lines.map(([name]) => name.toLowerCase()))];
    const message = { method: verb, target: pathname + search, rawHeaders };
    const components = ["@method", "@path", "@query", "content-type", "content-digest", ...names];
    const options: Parameters<typeof sign>[1] = {
      key: privateKey,
      keyid: "test-key",
      components,
      created: now,
      expires: now + seconds,
      nonce,
    };
    return { message, names, fields: sign(message, options) };
  });

const arriving = ({ message, fields }: Signed): RequestMessage => ({
  ...message,
  rawHeaders: [
    ...message.rawHeaders,
    "Signature-Input",
    fields.signatureInput,
    "Signature",
    fields.signature,
  ],
});

test("what sign() signs, verify() accepts in every engine, whatever the headers and the path", () => {
  fc.assert(
    fc.property(signed, (made) => {
      const request = arriving(made);
      expect(verdictOf(() => verify(request, strict))).toBe("accepted");
      expect(verdictOf(() => verify(request, { ...strict, engine: "noble" }))).toBe("accepted");
      expect(verdictOf(() => verify(request, { ...strict, engine: "sodium" }))).toBe("accepted");
    }),
    fuzzRuns(100),
  );
});

test("the base is the one of string concatenation, so that a signer without this package is accepted", () => {
  fc.assert(
    fc.property(signed, ({ message, names, fields }) => {
      const [pathname = "", ...search] = message.target.split("?");
      const valueOf = (wanted: string): string =>
        message.rawHeaders
          .flatMap((name, index, all) =>
            index % 2 === 0 && name.toLowerCase() === wanted ? [(all[index + 1] ?? "").trim()] : [],
          )
          .join(", ");
      const lines = [
        `"@method": ${message.method}`,
        `"@path": ${pathname}`,
        `"@query": ?${search.join("?")}`,
        ...["content-type", "content-digest", ...names].map((name) => `"${name}": ${valueOf(name)}`),
        `"@signature-params": ${fields.signatureInput.slice("sig1=".length)}`,
      ];
      expect(fields.signatureBase).toBe(lines.join("\n"));
      const bytes = signBytes(null, Buffer.from(lines.join("\n")), privateKey);
      expect(fields.signature).toBe(`sig1=:${bytes.toString("base64")}:`);
    }),
    fuzzRuns(300),
  );
});

type Part = "method" | "target" | "header" | "signatureInput" | "signature";

test.each<Part>(["method", "target", "header", "signatureInput", "signature"])(
  "any other byte in the %s is refused",
  (part) => {
    fc.assert(
      fc.property(signed, fc.nat(), fc.integer({ min: 0, max: 255 }), fc.nat(), (made, at, code, line) => {
        const request = arriving(made);
        const changed = changeByte(request, part, { at, code, line });
        fc.pre(changed !== undefined);
        if (changed !== undefined) expect(verdictOf(() => verify(changed, strict))).not.toBe("accepted");
      }),
      fuzzRuns(300),
    );
  },
);

test("all engines agree on signatures put together from hostile parts", () => {
  const message = Buffer.from("pay");
  const good = signBytes(null, message, privateKey);
  const points = [1n, 2n, 148n, L - 1n].flatMap((r) =>
    torsion.map((small) => ({ R: ed25519.Point.BASE.multiply(r).add(small).toBytes(), r })),
  );
  const commitment = fc.oneof(
    fc.constantFrom(...points),
    fc.constantFrom(...smallOrderEncodings).map(([, hex]) => ({ R: Buffer.from(hex, "hex"), r: 0n })),
    fc.uint8Array({ minLength: 32, maxLength: 32 }).map((R) => ({ R, r: 0n })),
  );
  const flipped = fc.tuple(fc.nat(63), fc.nat(7)).map(([at, bit]) => {
    const bytes = Buffer.from(good);
    bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << bit), at);
    return bytes;
  });
  const solved = fc.tuple(commitment, fc.constantFrom(0n, 0n, 0n, L, 2n * L)).map(([{ R, r }, excess]) => {
    return withS(signWith(R, r, message), (s) => s + excess);
  });
  const random = fc.uint8Array({ minLength: 60, maxLength: 68 });
  let accepted = 0;
  fc.assert(
    fc.property(
      fc.oneof(fc.constant(good), flipped, { weight: 3, arbitrary: solved }, random),
      (signature) => {
        const native = verifyEd25519(key.publicKey, message, signature, "native");
        expect(verifyEd25519(key.publicKey, message, signature, "noble")).toBe(native);
        expect(verifyEd25519(key.publicKey, message, signature, "sodium")).toBe(native);
        if (native) accepted++;
      },
    ),
    { ...fuzzRuns(300), examples: [[good]] },
  );
  expect(accepted).toBeGreaterThan(0);
});

/** The request with one byte replaced; undefined where the part is empty or the byte is the same. */
function changeByte(
  request: RequestMessage,
  part: Part,
  { at, code, line }: { readonly at: number; readonly code: number; readonly line: number },
): RequestMessage | undefined {
  const replace = (text: string): string | undefined => {
    const index = text.length === 0 ? 0 : at % text.length;
    const changed = text.slice(0, index) + String.fromCharCode(code) + text.slice(index + 1);
    return changed === text || text === "" ? undefined : changed;
  };
  const { rawHeaders } = request;
  if (part === "method" || part === "target") {
    const changed = replace(request[part]);
    return changed === undefined ? undefined : { ...request, [part]: changed };
  }
  const covered = (rawHeaders.length - 4) / 2;
  const value = {
    header: 2 * (line % covered) + 1,
    signatureInput: rawHeaders.length - 3,
    signature: rawHeaders.length - 1,
  }[part];
  const changed = replace(rawHeaders[value] ?? "");
  // White space around a value is no part of it.
  if (changed === undefined || changed.trim() === rawHeaders[value]?.trim()) return undefined;
  return { ...request, rawHeaders: rawHeaders.map((text, index) => (index === value ? changed : text)) };
}
