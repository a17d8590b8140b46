/**
 * What is wrong with what the handlers wrote and the service received; empty when nothing is. `applied`: rows in their order, of `events`
 * acknowledged ones. `settled`: keys of payouts that committed; `rolledBack`: of those that did not; `received`: how often, by key.
 */
export function judge({ events, applied, settled, rolledBack, received, dead }) {
  const faults = [];
  const last = new Map();
  for (const { entity, number } of applied) {
    const before = last.get(entity) ?? 0;
    if (Number(number) !== before + 1) faults.push(`${entity}: event ${number} was applied behind ${before}`);
    last.set(entity, Math.max(before, Number(number)));
  }
  if (applied.length !== events)
    faults.push(`${applied.length} events were applied, of ${events} acknowledged`);
  for (const key of settled) if (!received.has(key)) faults.push(`the outcome of ${key} was not received`);
  const known = new Set(settled);
  for (const key of received.keys()) {
    if (!known.has(key)) faults.push(`an outcome of ${key} was received, which is not settled`);
  }
  for (const key of rolledBack) if (known.has(key)) faults.push(`${key} is settled, and was rolled back`);
  if (dead > 0) faults.push(`${dead} tasks are dead`);
  return faults;
}
