import type { Algorithm, SignatureAlgorithm } from "./algorithm.ts";
import { ed25519Algorithm } from "./ed25519.ts";

/** Every algorithm by its name. */
export const algorithms: Readonly<Record<SignatureAlgorithm, Algorithm>> = { ed25519: ed25519Algorithm };
