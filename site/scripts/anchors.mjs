// The anchors of headings: VitePress and the repository's view make different ones of the same title.

/** As VitePress has it in the address of a place. */
export function vitepressAnchor(title) {
  return title
    .normalize("NFKD")
    .replaceAll(/[\u0300-\u036F]/g, "")
    .replaceAll(/[\s~`!@#$%^&*()\-_+=[\]{}|\\;:"'“”‘’<>,.?/]+/g, "-")
    .replaceAll(/^-|-$/g, "")
    .replace(/^(\d)/, "_$1")
    .toLowerCase();
}

/** As GitHub has it. */
export function githubAnchor(title) {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");
}

/** The text of each heading outside fences, without what marks it. */
export function headingsOf(markdown) {
  const outside = markdown.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");
  return [...outside.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", ""),
  );
}

/** The anchors of all headings, by `anchorOf`; what comes again is counted, as both do. */
export function anchorsOf(markdown, anchorOf) {
  const counts = new Map();
  return headingsOf(markdown).map((title) => {
    const anchor = anchorOf(title);
    const before = counts.get(anchor) ?? 0;
    counts.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}
