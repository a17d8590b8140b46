// Every rule is worth something only if a store that breaks it is noticed: each of these stores breaks one.
import { type ContractCase, idempotencyStoreContract } from "@countersign/store-contract";
import { type Store, createPlatform, harnessOf } from "../platform.ts";
import { wrongClaims } from "./claims.ts";
import { wrongDecisions } from "./decisions.ts";
import { wrongEngines } from "./engine.ts";
import { wrongRaces } from "./races.ts";
import { wrongSettling } from "./settling.ts";
import { wrongTexts } from "./texts.ts";
import { type Change, type WrongStore, listed, wrongStoreOn } from "./wrong-store.ts";

export const wrongStores = [
  wrongClaims,
  wrongRaces,
  wrongSettling,
  wrongDecisions,
  wrongTexts,
  wrongEngines,
].flatMap(listed);

export function casesOf(given: Change | WrongStore): readonly ContractCase[] {
  const store = typeof given === "function" ? { wrong: given } : given;
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
