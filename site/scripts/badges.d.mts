type File = readonly [file: string, text: string];

/** Each badge of the README: its file from the root, and what it has to hold. */
export function badges(): readonly File[];

/** Each badge of packages alone. */
export function numberBadges(): readonly File[];

/** Each package's README, from the root, with its line of badges. */
export function readmesWithBadges(): readonly File[];
