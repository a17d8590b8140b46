// node test/vectors/sign.mjs: signs new vectors, and writes the counts and the sums. In a new one `sig1=:@p256:` stands for the signature
// of `expected.bases.sig1` under that test key. Signs by node:crypto, with no code of the packages.
import { constants, createHash, createHmac, createPrivateKey, sign } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

const at = (name) => new URL(name, import.meta.url);
const read = (name) => readFileSync(at(name), "utf8");

const rfcKeys = "../../packages/kernel/http-message-signatures/test/fixtures/rfc9421-keys.json";
const jwks = { ...JSON.parse(read(rfcKeys)), ...JSON.parse(read("test-keys.json")) };

const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 };
const schemes = [
  [/ed25519$/i, null, {}],
  [/p256$/i, "sha256", { dsaEncoding: "ieee-p1363" }],
  [/p384$/i, "sha384", { dsaEncoding: "ieee-p1363" }],
  [/rsaPss$/, "sha512", pss],
  [/rsa(?:1024)?$/i, "sha256", {}],
];

function signatureOf(base, name) {
  const jwk = jwks[name];
  if (jwk.kty === "oct")
    return createHmac("sha256", Buffer.from(jwk.k, "base64url")).update(base).digest("base64");
  const [, digest, options] = schemes.find(([pattern]) => pattern.test(name));
  const key = createPrivateKey({ key: jwk, format: "jwk" });
  return sign(digest, Buffer.from(base), { key, ...options }).toString("base64");
}

/** The line of a vector with its signatures made. */
export function signedLine(line) {
  const { expected } = JSON.parse(line.replace(/,$/, ""));
  return line.replaceAll(
    /([a-z0-9_.*-]+)=:@(\w+):/g,
    (_, label, name) => `${label}=:${signatureOf(expected.bases[label], name)}:`,
  );
}

function whole(text) {
  const lines = text.split("\n").map((line) => (line.startsWith('{"id"') ? signedLine(line) : line));
  const count = lines.filter((line) => line.startsWith('{"id"')).length;
  return lines.map((line) => line.replace(/^"count": \d+,$/, `"count": ${count},`)).join("\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = readdirSync(at(".")).filter((name) => name.endsWith(".json"));
  for (const name of names) writeFileSync(at(name), whole(read(name)));
  const sums = names
    .toSorted()
    .map((name) => `${createHash("sha256").update(read(name)).digest("hex")}  ${name}\n`);
  writeFileSync(at("SHA256SUMS"), sums.join(""));
}
