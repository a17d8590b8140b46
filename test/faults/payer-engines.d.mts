export function payoutsTable(name: string): string;
