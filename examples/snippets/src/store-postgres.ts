import { fromPg } from "@countersign/databases";
import { payoutEndpoint } from "countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import { Pool } from "pg";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const keys = {
  "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
};

const pool = new Pool({ connectionString: process.env["DATABASE_URL"] });
// Without a listener, the loss of a resting connection ends the process.
pool.on("error", (error) => console.error(error.message));
export const stores = createPostgresStores({ database: fromPg(pool) });

/** An Express middleware. The row, the key and the nonce commit together. */
export const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys },
  stores,
  async pay({ idempotencyKey }, { tx }) {
    await tx.query("INSERT INTO payouts (key) VALUES ($1)", [idempotencyKey]);
  },
});
