// Signs a base by node:crypto alone. Signatures that are random are made once and kept, so that the vectors do not change.
import { constants, createHash, createHmac, sign, verify } from "node:crypto";
import { signingKey } from "./keys.mjs";

const pss = { padding: constants.RSA_PKCS1_PSS_PADDING };
const p1363 = { dsaEncoding: "ieee-p1363" };
const asymmetric = (digest, options, random) => ({ digest, options, random });

// By the names of RFC 9421; those with a comma are wrong on purpose.
const schemes = {
  ed25519: asymmetric(null, {}, false),
  "ecdsa-p256-sha256": asymmetric("sha256", p1363, true),
  "ecdsa-p384-sha384": asymmetric("sha384", p1363, true),
  "rsa-pss-sha512": asymmetric("sha512", { ...pss, saltLength: 64 }, true),
  "rsa-v1_5-sha256": asymmetric("sha256", {}, false),
  "ecdsa-p256, in DER": asymmetric("sha256", { dsaEncoding: "der" }, true),
  "ecdsa-p256, by sha384": asymmetric("sha384", p1363, true),
  "ecdsa-p384, by sha256": asymmetric("sha256", p1363, true),
  "rsa-pss-sha512, salt of 32": asymmetric("sha512", { ...pss, saltLength: 32 }, true),
  "rsa-pss-sha512, salt of 0": asymmetric("sha512", { ...pss, saltLength: 0 }, false),
  "rsa-pss, by sha256": asymmetric("sha256", { ...pss, saltLength: 32 }, true),
  "rsa-v1_5, by sha512": asymmetric("sha512", {}, false),
  "rsa-v1_5, by sha1": asymmetric("sha1", {}, false),
};

/** Keeps random signatures: `kept` has those of the last time, `used` gets those of this one. */
export class Signatures {
  used = {};

  constructor(kept) {
    this.kept = kept;
  }

  /** The signature of `base`, text, by the key of that name. */
  make(base, keyName, scheme) {
    const key = signingKey(keyName);
    if (scheme === "hmac-sha256") return createHmac("sha256", key).update(base).digest();
    const { digest, options, random } = schemes[scheme];
    const data = Buffer.from(base);
    const withOptions = { key, ...options };
    if (!random) return sign(digest, data, withOptions);
    const name = `${scheme} ${createHash("sha256").update(`${keyName}\n${base}`).digest("hex")}`;
    const before = Buffer.from(this.kept[name] ?? "", "base64");
    const isGood = before.length > 0 && verify(digest, data, withOptions, before);
    const bytes = isGood ? before : sign(digest, data, withOptions);
    this.used[name] = bytes.toString("base64");
    return bytes;
  }
}
