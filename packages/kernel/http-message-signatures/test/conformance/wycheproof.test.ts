import { describe, expect, test } from "@jest/globals";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { verifyEd25519, verifyEd25519Async } from "../../src/algorithms/ed25519.ts";
import { readJson, suiteFolder } from "./vectors.ts";

interface Case {
  readonly title: string;
  readonly publicKey: string;
  readonly message: string;
  readonly signature: string;
  readonly valid: boolean;
}

interface Group {
  readonly publicKey: { readonly pk: string };
  readonly tests: readonly {
    readonly tcId: number;
    readonly comment: string;
    readonly flags: readonly string[];
    readonly msg: string;
    readonly sig: string;
    readonly result: "valid" | "invalid";
  }[];
}

// RFC 8032 section 7.1: TEST 1, TEST 2, TEST 3.
const published: readonly Case[] = [
  {
    title: "RFC 8032 TEST 1",
    publicKey: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    message: "",
    signature:
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    valid: true,
  },
  {
    title: "RFC 8032 TEST 2",
    publicKey: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    message: "72",
    signature:
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    valid: true,
  },
  {
    title: "RFC 8032 TEST 3",
    publicKey: "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    message: "af82",
    signature:
      "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    valid: true,
  },
  {
    title: "RFC 8032 TEST 3 with the message of TEST 2",
    publicKey: "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    message: "72",
    signature:
      "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    valid: false,
  },
];

function readWycheproof(folder: string): readonly Case[] {
  const { testGroups } = readJson(folder, "ed25519_test.json") as { readonly testGroups: readonly Group[] };
  return testGroups.flatMap(({ publicKey, tests }) =>
    tests.map(({ tcId, comment, flags, msg, sig, result }) => ({
      title: `${tcId} ${comment} ${flags.join(" ")}`,
      publicKey: publicKey.pk,
      message: msg,
      signature: sig,
      valid: result === "valid",
    })),
  );
}

const folder = suiteFolder("wycheproof");
const cases = folder === undefined ? published : readWycheproof(folder);

describe("Ed25519 verification of Wycheproof", () => {
  test.each(cases.map((each) => [each.title, each] as const))(
    "has the verdict of the suite in every engine: %s",
    async (_title, { publicKey, message, signature, valid }) => {
      const key = importVerificationKey("wycheproof", Buffer.from(publicKey, "hex").toString("base64"));
      const [data, bytes] = [Buffer.from(message, "hex"), Buffer.from(signature, "hex")];
      expect(verifyEd25519(key.publicKey, data, bytes, "native")).toBe(valid);
      expect(verifyEd25519(key.publicKey, data, bytes, "noble")).toBe(valid);
      expect(verifyEd25519(key.publicKey, data, bytes, "sodium")).toBe(valid);
      expect(await verifyEd25519Async(key.publicKey, data, bytes)).toBe(valid);
    },
  );

  test("runs every case", () => {
    expect(cases).toHaveLength(folder === undefined ? 4 : 151);
  });
});
