import { constants, createHmac, createPublicKey, verify as verifyBytes } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import {
  createSignatureBase,
  importVerificationKey,
  parseSignatureInput,
  verify,
  type SignatureAlgorithm,
  type SignatureInput,
} from "@countersign/http-message-signatures";
import type { Message } from "../../dist/message.js";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/internal";
import { verdictOf } from "../hand-signer.ts";
import { readJson, suiteFolder } from "./vectors.ts";

interface Case {
  readonly id: string;
  readonly alg: string;
  readonly keyid: string;
  readonly message?: string;
  readonly message_raw?: string;
  readonly signature_base: string;
  readonly reconstructed_signature_base?: string;
  readonly signature_input: string;
  readonly signature: string;
  readonly expected_valid?: boolean;
}
interface Suite {
  readonly keys: Readonly<
    Record<string, { readonly jwk?: Readonly<Record<string, string>>; readonly base64?: string }>
  >;
  readonly test_request_raw: string;
  readonly test_response_raw: string;
  readonly cases: readonly Case[];
}

// RFC 9421 appendix B.2.6: enough to notice when the suite is not there and something broke.
const example: Suite = {
  keys: {
    "test-key-ed25519": {
      jwk: { kty: "OKP", crv: "Ed25519", x: "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs" },
    },
  },
  test_request_raw: `POST /foo?param=Value&Pet=dog HTTP/1.1
Host: example.com
Date: Tue, 20 Apr 2021 02:07:55 GMT
Content-Type: application/json
Content-Length: 18

{"hello": "world"}`,
  test_response_raw: "",
  cases: [
    {
      id: "B.2.6",
      alg: "ed25519",
      keyid: "test-key-ed25519",
      message: "test-request",
      signature_base: `"date": Tue, 20 Apr 2021 02:07:55 GMT
"@method": POST
"@path": /foo
"@authority": example.com
"content-type": application/json
"content-length": 18
"@signature-params": ("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`,
      signature_input:
        'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
      signature:
        "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
    },
  ],
};

const folder = suiteFolder("rfc9421");
const suite = folder === undefined ? example : (readJson(folder, "appendix-b.json") as Suite);
const named = suite.cases.map((each) => [each.id, each] as const);

function messageOf({ id, message, message_raw: raw, signature_base: base }: Case): Message {
  if (raw !== undefined) return parseRaw(raw);
  // The request of B.3 stands in the RFC as what the proxy sends on, without its own text in the suite.
  if (id === "B.3") return forwarded(base);
  return parseRaw(message === "test-response" ? suite.test_response_raw : suite.test_request_raw);
}

function parseRaw(raw: string): Message {
  const [start = "", ...lines] = (raw.split("\n\n")[0] ?? "").split("\n");
  const rawHeaders = lines.flatMap((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const [first = "", second = ""] = start.split(" ");
  return first.startsWith("HTTP/")
    ? { status: Number(second), rawHeaders }
    : { method: first, target: second, rawHeaders };
}

function forwarded(base: string): Message {
  const certificate = /^"client-cert": (.*)$/m.exec(base)?.[1] ?? "";
  const rawHeaders = ["Host", "service.internal.example", "Client-Cert", certificate];
  return { method: "POST", target: "/foo?param=Value&Pet=dog", rawHeaders };
}

function only<T>(values: ReadonlyMap<string, T>): T {
  const [value] = values.values();
  if (value === undefined) throw new Error("no label");
  return value;
}

const inputOf = (each: Case): SignatureInput => only(parseSignatureInput(each.signature_input));

/** By node:crypto alone, so that it says something about the base. */
function isRight({ alg, keyid, signature }: Case, base: string): boolean {
  const { jwk, base64 = "" } = suite.keys[keyid] ?? {};
  const bytes = only(parseByteSequenceDictionary(signature));
  const data = Buffer.from(base);
  if (alg === "hmac-sha256") {
    return createHmac("sha256", Buffer.from(base64, "base64")).update(data).digest().equals(bytes);
  }
  const key = createPublicKey({ key: { ...jwk }, format: "jwk" });
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  if (alg === "rsa-pss-sha512") return verifyBytes("sha512", data, { key, padding, saltLength: 64 }, bytes);
  if (alg.startsWith("ecdsa")) return verifyBytes("sha256", data, { key, dsaEncoding: "ieee-p1363" }, bytes);
  return verifyBytes(null, data, key, bytes);
}

describe("appendix B of RFC 9421", () => {
  test("is there with its cases", () => {
    const ids = ["B.2.1", "B.2.2", "B.2.3", "B.2.4", "B.2.5", "B.2.6", "B.3"];
    const transformed = [1, 2, 3, 4, 5, 6].map((number) => `B.4-${number}`);
    const all = folder === undefined ? ["B.2.6"] : [...ids, ...transformed];
    expect(suite.cases.map(({ id }) => id)).toEqual(all);
  });

  test.each(named)("has the base of %s byte for byte, unless it covers nothing", (id, each) => {
    const make = (): string => createSignatureBase(messageOf(each), inputOf(each));
    if (id === "B.2.1") {
      expect(verdictOf(make)).toBe("components-empty");
      return;
    }
    const base = make();
    expect(base).toBe(each.reconstructed_signature_base ?? each.signature_base);
    expect(isRight(each, base)).toBe(each.expected_valid ?? true);
  });

  test.each(named.filter(([, { alg }]) => alg === "ed25519"))(
    "verifies %s as it stands by a policy",
    (_id, each) => {
      const { jwk = {} } = suite.keys[each.keyid] ?? {};
      const publicKey = createPublicKey({ key: { ...jwk }, format: "jwk" });
      const key = importVerificationKey(each.keyid, publicKey);
      const message = messageOf(each);
      const fields =
        each.message_raw === undefined
          ? ["Signature-Input", each.signature_input, "Signature", each.signature]
          : [];
      const algorithms: readonly SignatureAlgorithm[] = ["ed25519"];
      const policy = {
        requiredComponents: ["@method", "@path", "@authority"],
        requiredParameters: ["created", "keyid"] as const,
        algorithms,
        windowSeconds: 60,
        clockSkewSeconds: 0,
        keys: () => key,
      };
      const signed = { ...message, rawHeaders: [...message.rawHeaders, ...fields] };
      const verdict = (now: number): string => verdictOf(() => verify(signed, { ...policy, now }));
      expect(verdict(1_618_884_473)).toBe(each.expected_valid === false ? "signature-mismatch" : "accepted");
      expect(verdict(1_618_884_533)).toBe(each.expected_valid === false ? "signature-mismatch" : "accepted");
      expect(verdict(1_618_884_534)).toBe("signature-expired");
      expect(verdict(1_618_884_472)).toBe("created-in-future");
    },
  );
});
