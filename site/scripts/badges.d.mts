/** Each badge of the README: its file from the root, and what it has to hold. */
export function badges(): readonly (readonly [file: string, svg: string])[];
