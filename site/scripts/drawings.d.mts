/** Drawings of docs/pictures that were not made of what they should show. */
export function staleDrawings(): readonly string[];
