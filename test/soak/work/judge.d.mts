export function judge(found: {
  readonly events: number;
  readonly applied: readonly { readonly entity: string; readonly number: number }[];
  readonly settled: readonly string[];
  readonly rolledBack: readonly string[];
  readonly received: ReadonlyMap<string, number>;
  readonly dead: number;
}): readonly string[];
