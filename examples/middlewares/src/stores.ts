// The app's own key store and nonce store. Each is an object with one method,
// so another one can take its place.
import {
  importVerificationKey,
  type KeyStore,
  type NonceStore,
  type VerificationKey,
} from "@countersign/http-signature-verify";
import type { SqliteDatabase } from "@countersign/store-sql";

// #region keys
/**
 * Reads the service's public keys from a table at each request: a row that is
 * added or deleted counts immediately. An error here is answered with 503.
 */
export function tableOfKeys(database: SqliteDatabase): KeyStore {
  database.exec(`CREATE TABLE IF NOT EXISTS keys
    (keyid TEXT PRIMARY KEY, public_key TEXT NOT NULL) STRICT`);
  const select = database.prepare("SELECT * FROM keys WHERE keyid = ?");
  // Importing a key vets it, which costs more than verifying a signature.
  const imported = new Map<string, VerificationKey>();
  return {
    get(keyid) {
      const row = select.get(keyid);
      if (row === undefined) return undefined; // an unknown keyid: 401
      const publicKey = String(Object(row).public_key);
      const name = `${keyid} ${publicKey}`;
      const known = imported.get(name);
      const key = known ?? importVerificationKey(keyid, publicKey);
      imported.set(name, key);
      return key;
    },
  };
}
// #endregion keys

// #region nonces
/**
 * Keeps used nonces in a table, which all processes share and which survives
 * a restart. On a full disk `claim` throws, and the response is 503: no new
 * nonce takes the place of a live one.
 */
export function tableOfNonces(
  database: SqliteDatabase,
  clock: () => number = Date.now,
): NonceStore {
  database.exec(`CREATE TABLE IF NOT EXISTS nonces
    (name TEXT PRIMARY KEY, token TEXT NOT NULL, kept_until INTEGER NOT NULL)
    STRICT;
    CREATE INDEX IF NOT EXISTS nonces_kept_until ON nonces (kept_until)`);
  const forget = database.prepare("DELETE FROM nonces WHERE kept_until < ?");
  // One statement: of two requests with one nonce, one changes a row. A
  // request's own token lets it repeat a claim whose reply it has lost.
  const keep = database.prepare(`INSERT INTO nonces VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET token = excluded.token
    WHERE token = excluded.token`);
  return {
    claim({ scope, nonce, token, retainMs }) {
      // retainMs is longer than the signature is accepted, and the nonce is
      // still kept in the last millisecond of it.
      const now = clock();
      forget.run(now);
      // As JSON, so that no two pairs have one name.
      const name = JSON.stringify([scope, nonce]);
      const owner = JSON.stringify(token);
      const { changes } = keep.run(name, owner, now + retainMs);
      return Number(changes) === 1 ? "fresh" : "seen";
    },
  };
}
// #endregion nonces
