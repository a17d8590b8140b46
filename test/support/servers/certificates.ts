import { generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";

/** A private key and the certificate of its public key, both PEM. */
export interface Certified {
  readonly key: string;
  readonly cert: string;
}

/** A certificate authority for tests: trust `cert` and every certificate that it issues is valid. */
export interface TestAuthority extends Certified {
  issue(): Certified;
}

/**
 * TEST KEYS, made anew each time: no fixture that expires, no tool beyond Node. The certificates are DER built by hand
 * (RFC 5280 section 4.1), valid from yesterday until tomorrow.
 */
export function testAuthority(): TestAuthority {
  const pair = generatePair();
  const cert = certificate({
    subject: authorityName,
    ...pair,
    issuerKey: pair.privateKey,
    extension: isAuthority,
  });
  return {
    key: pem(pair.privateKey),
    cert,
    issue() {
      const leaf = generatePair();
      const subject = distinguishedName("countersign test server");
      return {
        key: pem(leaf.privateKey),
        cert: certificate({ subject, ...leaf, issuerKey: pair.privateKey, extension: forLoopback }),
      };
    },
  };
}

/** A certificate for the server 127.0.0.1 that signs itself: who trusts it trusts this server alone. */
export function selfSignedCertificate(): Certified {
  const pair = generatePair();
  const cert = certificate({
    subject: authorityName,
    ...pair,
    issuerKey: pair.privateKey,
    extension: forLoopback,
  });
  return { key: pem(pair.privateKey), cert };
}

interface Pair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

interface Unsigned {
  readonly subject: Buffer;
  readonly publicKey: KeyObject;
  readonly issuerKey: KeyObject;
  readonly extension: Buffer;
}

function certificate({ subject, publicKey, issuerKey, extension }: Unsigned): string {
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(8)]);
  const toBeSigned = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, serial),
    ecdsaWithSha256,
    authorityName,
    sequence(utcTime(Date.now() - dayMs), utcTime(Date.now() + dayMs)),
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, sequence(extension)),
  );
  const signature = sign("sha256", toBeSigned, issuerKey);
  const der = sequence(toBeSigned, ecdsaWithSha256, tlv(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

function generatePair(): Pair {
  return generateKeyPairSync("ec", { namedCurve: "prime256v1" });
}

function pem(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

function distinguishedName(commonName: string): Buffer {
  return sequence(tlv(0x31, sequence(oid(0x55, 0x04, 0x03), tlv(0x0c, Buffer.from(commonName)))));
}

function tlv(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

function oid(...bytes: number[]): Buffer {
  return tlv(0x06, Buffer.from(bytes));
}

function utcTime(epochMs: number): Buffer {
  const digits = new Date(epochMs).toISOString().replace(/[-:T]|\.\d+/g, "");
  return tlv(0x17, Buffer.from(digits.slice(2)));
}

const dayMs = 86_400_000;
const ecdsaWithSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
const authorityName = distinguishedName("countersign test authority");
const critical = tlv(0x01, Buffer.from([0xff]));
const isAuthority = sequence(
  oid(0x55, 0x1d, 0x13),
  critical,
  tlv(0x04, sequence(tlv(0x01, Buffer.from([0xff])))),
);
const forLoopback = sequence(
  oid(0x55, 0x1d, 0x11),
  tlv(0x04, sequence(tlv(0x87, Buffer.from([127, 0, 0, 1])))),
);
