import type { NonceClaim } from "@countersign/core";
import type { ContractNonceStore, EngineHarness } from "../../dist/harness.js";
import type { Kept, NoncePlatform, NoncePlatformOptions } from "../nonce-platform.ts";

export interface WrongNonceStore {
  readonly does: string;
  /** How the name of the case begins that must notice. */
  readonly fails: string;
  /** The methods that are wrong. Called for each handle. */
  readonly wrong?: (platform: NoncePlatform) => Partial<ContractNonceStore>;
  readonly platform?: NoncePlatformOptions;
  readonly engine?: (platform: NoncePlatform) => Partial<EngineHarness>;
}

/** What is kept of a nonce that is live. */
export function foundIn(platform: NoncePlatform, claim: NonceClaim): Kept | undefined {
  const found = platform.kept.get(platform.nameOf(claim));
  return found !== undefined && found.untilMs >= platform.now() ? found : undefined;
}

export function changed(change: (claim: NonceClaim) => Partial<NonceClaim>): Pick<WrongNonceStore, "wrong"> {
  return {
    wrong: ({ store }) => ({ claim: (claim) => store.claim({ ...claim, ...change(claim) }) }),
  };
}
