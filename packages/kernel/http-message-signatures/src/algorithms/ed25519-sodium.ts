import { createRequire } from "node:module";

/** What is used of sodium-native. */
interface Sodium {
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

let loaded: Sodium | undefined;

/** libsodium, loaded when it is first asked for. Throws a TypeError where the package cannot be loaded. */
export function loadSodium(): Sodium {
  loaded ??= requireSodium();
  return loaded;
}

function requireSodium(): Sodium {
  const require = createRequire(import.meta.url);
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the package has no types
    return require("sodium-native") as Sodium;
  } catch (cause) {
    const message = 'the engine "sodium" needs the package sodium-native: npm install sodium-native@5.1.0';
    throw new TypeError(message, { cause });
  }
}

/** libsodium verifies by the cofactorless equation, and by itself refuses an S that is not reduced and points of small order. */
export function verifyBySodium(publicKey: Uint8Array, data: Uint8Array, signature: Uint8Array): boolean {
  return loadSodium().crypto_sign_verify_detached(signature, data, publicKey);
}
