// Every rule is worth something only if a store that breaks it is noticed: each of these stores breaks one.
import { type ContractCase, idempotencyStoreContract } from "@countersign/store-contract";
import { type Store, createPlatform, harnessOf } from "../platform.ts";
import { wrongClaims } from "./claims.ts";
import { wrongClocks } from "./clocks.ts";
import { wrongDecisions } from "./decisions.ts";
import { wrongEffects } from "./effects.ts";
import { wrongEngines } from "./engine.ts";
import { wrongFences } from "./fences.ts";
import { wrongKeeping } from "./keeping.ts";
import { wrongLeases } from "./leases.ts";
import { wrongListings } from "./listings.ts";
import { wrongOnce } from "./once.ts";
import { wrongRaces } from "./races.ts";
import { wrongReopening } from "./reopening.ts";
import { wrongRetention } from "./retention.ts";
import { wrongSettling } from "./settling.ts";
import { wrongTexts } from "./texts.ts";
import { wrongTransactions } from "./transactions.ts";
import { type WrongStore, wrongStoreOn } from "./wrong-store.ts";

export const wrongStores: readonly WrongStore[] = [
  ...wrongClaims,
  ...wrongRaces,
  ...wrongLeases,
  ...wrongClocks,
  ...wrongSettling,
  ...wrongDecisions,
  ...wrongKeeping,
  ...wrongReopening,
  ...wrongFences,
  ...wrongRetention,
  ...wrongEffects,
  ...wrongTexts,
  ...wrongEngines,
  ...wrongTransactions,
  ...wrongOnce,
  ...wrongListings,
];

export function casesOf(store: Partial<WrongStore>): readonly ContractCase[] {
  return idempotencyStoreContract(
    () => {
      const platform = createPlatform(store.platform);
      const made = wrongStoreOn(platform, store);
      const handle = (): Store => (store.isPerHandle ? wrongStoreOn(platform, store) : made);
      return harnessOf(platform, handle, store.engine?.(platform));
    },
    { seed: 1, histories: 150 },
  );
}

/** Whether the case compares the store with the reference. */
export function usesReference({ name }: ContractCase): boolean {
  return name.startsWith("whatever steps come") || name.startsWith("of two steps at once");
}
