// The drawings of docs/pictures, each with a stamp of what it was made of.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import path from "node:path";
import { drawingNames, drawingSource } from "./pictures.mjs";
import { read, root } from "./source.mjs";

/** The file of a drawing, from the root. */
export const pictureFile = (name) => `docs/pictures/${name}.svg`;

/** Those that were not made of what they should show. */
export function staleDrawings() {
  return drawingNames.filter((name) => {
    const file = pictureFile(name);
    return !existsSync(path.join(root, file)) || !read(file).includes(stampOf(name));
  });
}

export function stampOf(name) {
  return `<!-- of ${createHash("sha256").update(drawingSource(name)).digest("hex")} -->`;
}
