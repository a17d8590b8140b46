export interface NearMiss<Draft> {
  readonly what: string;
  /** What the sender has to change, beginning with a verb. */
  readonly says: string;
  /** Applies the mistake to a draft; the same draft if it does not apply. */
  readonly change: (draft: Draft) => Draft;
  /** Two near misses of one part are not tried together. */
  readonly part: string;
  /** Usual ones are also tried in pairs. */
  readonly isUsual: boolean;
}

export type Row<Instead> = readonly [
  what: string,
  how: string,
  instead: readonly Instead[],
  isUsual?: "usual" | undefined,
];

export interface TableOf<Draft, Instead> {
  readonly part: string;
  readonly says: (how: string, instead: Instead) => string;
  readonly put: (draft: Draft, instead: Instead) => Draft;
}

export function missesOf<Draft, Instead>(
  rows: readonly Row<Instead>[],
  { part, says, put }: TableOf<Draft, Instead>,
): readonly NearMiss<Draft>[] {
  return rows.flatMap(([what, how, instead, isUsual]) =>
    instead.map((each) => ({
      what,
      says: says(how, each),
      change: (draft: Draft) => put(draft, each),
      part,
      isUsual: isUsual === "usual",
    })),
  );
}

const maxOrders = 120;

/** At most 120 other orders; the sorted one first, as many signers use it. */
export function orderRows<Item>(
  what: string,
  items: readonly Item[],
  nameOf: (item: Item) => string,
): readonly Row<readonly Item[]>[] {
  const sorted = [...items];
  sorted.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
  const orders: (readonly Item[])[] = [];
  for (const order of permutations(items)) {
    orders.push(orders.length === 0 ? sorted : order);
    if (orders.length > maxOrders) break;
  }
  return orders.map((order, index) => {
    const how = order.length === 0 ? "none" : order.map(nameOf).join(", ");
    return [what, how, [order], index === 0 ? "usual" : undefined];
  });
}

function* permutations<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  if (items.length <= 1) {
    yield items;
    return;
  }
  for (const [index, item] of items.entries()) {
    const others = items.filter((_, at) => at !== index);
    for (const rest of permutations(others)) yield [item, ...rest];
  }
}
