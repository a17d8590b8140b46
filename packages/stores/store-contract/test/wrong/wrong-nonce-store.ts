import type { NonceClaim } from "@countersign/core";
import type { ContractNonceStore, EngineHarness } from "../../dist/harness.js";
import type { Kept, NoncePlatform, NoncePlatformOptions } from "../nonce-platform.ts";
import { type FoundBy, replacing } from "./wrong-store.ts";

type Change = (platform: NoncePlatform) => Partial<ContractNonceStore>;
export type WrongNonceStores = FoundBy<Change | WrongNonceStore>;

export interface WrongNonceStore {
  /** The methods that are wrong. Called for each handle. */
  readonly wrong?: Change;
  readonly platform?: NoncePlatformOptions;
  readonly engine?: (platform: NoncePlatform) => Partial<EngineHarness>;
}

/** What is kept of a nonce that is live. */
export function foundIn(platform: NoncePlatform, claim: NonceClaim): Kept | undefined {
  const found = platform.kept.get(platform.nameOf(claim));
  return found !== undefined && found.untilMs >= platform.now() ? found : undefined;
}

export const instead = replacing<NoncePlatform, ContractNonceStore>();

export function changed(change: (claim: NonceClaim) => Partial<NonceClaim>): Change {
  return instead("claim", ({ store }, claim) => store.claim({ ...claim, ...change(claim) }));
}
