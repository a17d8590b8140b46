/** The recording of the demo as an SVG. */
export function stillSvg(cast: string): string;
