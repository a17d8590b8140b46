import { writeFileSync } from "node:fs";
import path from "node:path";
import { generateKeyPair, sampleBusiness, writeKeyFiles, type SigningKeyPair } from "@countersign/sandbox";
import type { Environment } from "./settings.ts";

/** What the demo's platforms are started with. */
export interface DemoSetup {
  readonly env: Environment;
  readonly key: SigningKeyPair;
  readonly logFile: string;
}

export const demoKeyid = "demo";

/**
 * Writes a fresh key pair and the sample business into `folder`. The database stays as it is: a key that was paid at an
 * earlier start is still paid.
 */
export function prepareDemo(folder: string): DemoSetup {
  const key = generateKeyPair({ keyid: demoKeyid });
  const { keysFile } = writeKeyFiles(key, { directory: folder, force: true });
  const businessesFile = path.join(folder, "businesses.json");
  const { businessId, iban } = sampleBusiness;
  writeFileSync(businessesFile, `${JSON.stringify([{ business_id: businessId, iban }], undefined, 2)}\n`);
  const logFile = path.join(folder, "platform.log");
  writeFileSync(logFile, "");
  return { key, logFile, env: environment(folder, keysFile, businessesFile) };
}

// Nothing of the contract is left to the surroundings: the cases expect these values.
function environment(folder: string, keysFile: string, businessesFile: string): Environment {
  return {
    HOST: "127.0.0.1",
    STORE_URL: `sqlite:${path.join(folder, "platform.db")}`,
    PAYOUT_KEYS: keysFile,
    BUSINESSES: businessesFile,
    PLATFORM_INSPECT: "1",
    PAYOUT_ALLOWED_IPS: undefined,
    PAYOUT_PATH: undefined,
    PATH_PREFIX: undefined,
    TRUST_PROXY: undefined,
    REFERENCE_FIELD: "reference",
    CONFIRMATION_URL: undefined,
    LOG_LEVEL: undefined,
  };
}
