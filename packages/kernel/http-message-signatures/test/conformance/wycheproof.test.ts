import { expect, test } from "@jest/globals";
import {
  importVerificationKey,
  signatureAlgorithms,
  type SignatureAlgorithm,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { algorithms } from "../../src/algorithms/registry.ts";
import { readJson, suiteFolder } from "./vectors.ts";

interface Group {
  readonly publicKey?: { readonly pk?: string };
  readonly publicKeyDer?: string;
  readonly tests: readonly {
    readonly tcId: number;
    readonly comment: string;
    readonly flags: readonly string[];
    readonly msg: string;
    readonly sig?: string;
    readonly key?: string;
    readonly tag?: string;
    readonly result: "valid" | "acceptable" | "invalid";
  }[];
}
type Case = Group["tests"][number];

interface Suite {
  readonly alg: SignatureAlgorithm;
  readonly file: string;
  readonly size: number;
  /** How many cases of the suite are valid, and taken. */
  readonly taken: number;
  /** Why a case that the suite does not call invalid is refused here all the same. */
  readonly stricter?: readonly { readonly reason: string; readonly applies: (each: Case) => boolean }[];
}

const suites: readonly Suite[] = [
  { alg: "ed25519", file: "ed25519_test.json", size: 151, taken: 88 },
  { alg: "ecdsa-p256-sha256", file: "ecdsa_secp256r1_sha256_p1363_test.json", size: 262, taken: 173 },
  { alg: "ecdsa-p384-sha384", file: "ecdsa_secp384r1_sha384_p1363_test.json", size: 280, taken: 193 },
  { alg: "rsa-pss-sha512", file: "rsa_pss_4096_sha512_mgf1_64_test.json", size: 179, taken: 132 },
  {
    alg: "rsa-v1_5-sha256",
    file: "rsa_signature_2048_sha256_test.json",
    size: 259,
    taken: 9,
    stricter: [
      {
        reason: "RFC 8017 section 9.2: the DigestInfo has a NULL; the suite leaves its absence to the reader",
        applies: ({ flags, result }) => flags.includes("MissingNull") && result === "acceptable",
      },
    ],
  },
  {
    alg: "hmac-sha256",
    file: "hmac_sha256_test.json",
    size: 174,
    taken: 30,
    stricter: [
      {
        reason: "a secret of less than 32 bytes is refused at import (RFC 2104 section 3)",
        applies: ({ key = "" }) => key.length < 64,
      },
      {
        reason: "a truncated tag: RFC 9421 section 3.3.3 has the whole output",
        applies: ({ tag = "" }) => tag.length < 64,
      },
    ],
  },
];

const folder = suiteFolder("wycheproof");

function readGroups(file: string): readonly Group[] {
  if (folder === undefined) return [];
  return (readJson(folder, file) as { readonly testGroups: readonly Group[] }).testGroups;
}

const bytesOf = (hex = ""): Buffer => Buffer.from(hex, "hex");

function keyOfCase({ alg }: Suite, hex: string | undefined): VerificationKey | undefined {
  const bytes = bytesOf(hex);
  // Under 32 bytes only: any other key of the suites has to be taken.
  if (alg === "hmac-sha256" && bytes.length < 32) {
    expect(() => importVerificationKey("wycheproof", bytes, { alg })).toThrow(/expected at least 32/);
    return undefined;
  }
  return importVerificationKey("wycheproof", alg === "hmac-sha256" ? bytes : bytes.toString("base64"), {
    alg,
  });
}

async function verdictsOf({ alg }: Suite, key: VerificationKey | undefined, each: Case): Promise<boolean[]> {
  if (key === undefined) return [false];
  const { verify, verifyAsync } = algorithms[alg];
  const [data, signature] = [bytesOf(each.msg), bytesOf(each.sig ?? each.tag)];
  const engines = alg === "ed25519" ? (["native", "noble", "sodium"] as const) : (["native"] as const);
  const verdicts = engines.map((engine) => verify(key.publicKey, data, signature, engine));
  return [...verdicts, await verifyAsync(key.publicKey, data, signature)];
}

test("every algorithm has its suite", () => {
  expect(suites.map(({ alg }) => alg)).toEqual(signatureAlgorithms);
});

for (const suite of folder === undefined ? [] : suites) {
  test(`Wycheproof for ${suite.alg}: every case has the verdict of the suite, or a reason`, async () => {
    const verdicts: unknown[] = [];
    const expected: unknown[] = [];
    for (const { publicKey, publicKeyDer, tests } of readGroups(suite.file)) {
      // The keys of MACs are those of their cases.
      const hex = publicKey?.pk ?? publicKeyDer;
      const shared = hex === undefined ? undefined : keyOfCase(suite, hex);
      for (const each of tests) {
        const { tcId, comment, result } = each;
        const exceptions = (suite.stricter ?? []).filter(({ applies }) => applies(each));
        // A case without verdict has to be decided above.
        expect(result === "acceptable" ? exceptions.length : 1).toBe(1);
        const found = await verdictsOf(suite, shared ?? keyOfCase(suite, each.key), each);
        verdicts.push([tcId, comment, ...new Set(found)]);
        expected.push([tcId, comment, result === "valid" && exceptions.length === 0]);
      }
    }
    expect(verdicts).toEqual(expected);
    expect(verdicts).toHaveLength(suite.size);
    expect(verdicts.filter((each) => Array.isArray(each) && each[2] === true)).toHaveLength(suite.taken);
  });
}
