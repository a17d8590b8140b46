export function payoutsTable(name: string, key?: string): string;
