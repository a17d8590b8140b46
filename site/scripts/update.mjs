import { writeFileSync } from "node:fs";
import path from "node:path";
import { badges, numberBadges, readmesWithBadges } from "./badges.mjs";
import { withExamples } from "./codes.mjs";
import { pictureFile, staleDrawings, stampOf } from "./drawings.mjs";
import { filled } from "./fill.mjs";
import { pageFiles, read, root } from "./source.mjs";
import { stillSvg } from "./still.mjs";

/** Writes what is not as it should be, and says which files these are. */
export async function update() {
  const codes = "site/pages/reference/codes.md";
  write([[codes, await withExamples(read(codes))]]);
  write(pageFiles().map((file) => [file, filled(file, read(file))]));
  write([...badges(), ...numberBadges(), ...readmesWithBadges()]);
  write([["docs/pictures/demo.svg", stillSvg(read("site/recordings/demo.cast"))]]);
  const stale = staleDrawings();
  if (stale.length === 0) return;
  const { ensureSiteInstalled } = await import("./install.mjs");
  ensureSiteInstalled();
  const { drawPictures } = await import("./pictures.mjs");
  for (const [name, { file }] of Object.entries(await drawPictures(stale)))
    write([[pictureFile(name), `${file}${stampOf(name)}\n`]]);
}

function write(files) {
  for (const [file, text] of files) {
    if (isSame(file, text)) continue;
    writeFileSync(path.join(root, file), text);
    console.log(file);
  }
}

function isSame(file, text) {
  try {
    return read(file) === text;
  } catch {
    return false;
  }
}
