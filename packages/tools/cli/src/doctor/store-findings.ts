import { listUndecided } from "../operator/list-keys.ts";
import { loadPostgres, loadRedis, loadSqlite } from "../operator/load-engine.ts";
import { failingInOneLine, withOperatorStore } from "../operator/operator-store.ts";
import { StoreFailure } from "../operator/store-failure.ts";
import type { StoreTarget } from "../operator/store-options.ts";
import { clockFinding } from "./clock-finding.ts";
import { findingsOf, type Finding, type Found, type StoreCondition } from "./findings.ts";

/** What is wrong with a store. */
export async function storeFindings(target: StoreTarget): Promise<readonly Finding[]> {
  const found = findingsOf(target.shown);
  try {
    const { doubts, clock, usable } = await failingInOneLine(target, () => conditionOf(target));
    const findings = [
      ...doubts.map(([id, message]) => found(id, message)),
      ...(clock === undefined ? [] : clockFinding(found, clock)),
    ];
    // The store itself refuses what is an error here.
    const isSound = usable && findings.every(({ severity }) => severity !== "error");
    return isSound ? [...findings, ...(await waiting(found, target))] : findings;
  } catch (error) {
    if (!(error instanceof StoreFailure)) throw error;
    return [found("store-unreachable", error.message)];
  }
}

async function conditionOf(target: StoreTarget): Promise<StoreCondition> {
  const { location } = target;
  if (location.engine === "module") return { doubts: [], usable: true };
  if (location.engine === "sqlite") return (await loadSqlite()).inspectSqlite(location, target);
  if (location.engine === "redis") return await (await loadRedis()).inspectRedis(location, target);
  return await (await loadPostgres()).inspectPostgres(location, target);
}

/** The idempotency keys that wait for an operator. Not on Redis, which would have to scan all keys for them. */
async function waiting(found: Found, target: StoreTarget): Promise<readonly Finding[]> {
  if (target.location.engine === "redis") return [];
  return await withOperatorStore(target, {}, async ({ idempotency, canList = true }) => {
    if (!canList) return [found("keys-not-listable", "the store has no list()")];
    const count = await listUndecided(idempotency, () => {});
    if (count === 0) return [];
    return [found("keys-held", `${count === 1 ? "1 key waits" : `${count} keys wait`} for a decision`)];
  });
}
