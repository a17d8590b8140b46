/** Files of the repository that are pages as they stand, and the page that each becomes. */
export const documents: Readonly<Record<string, string>>;

/** The address at which the pages stand, with a slash at its end. */
export const homepage: string;
export const repository: string;

/** False until npm has the packages. */
export const published: boolean;

/** The pages of site/pages, from the root, without the list of them. */
export function pageFiles(): readonly string[];
