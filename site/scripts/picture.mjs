// Pictures of pages as the documentation has them: with a palette, a third of what a browser writes.
import { writeFileSync } from "node:fs";
import { crc32, deflateSync } from "node:zlib";

const maxColours = 256;

/** Writes what a page or a part of it shows, as a browser's screenshot, into `file`. */
export async function writePicture(file, shown) {
  const shot = await shown.screenshot();
  const browser = (shown.page?.() ?? shown).context().browser();
  // The page's own policy may let it read no picture.
  const blank = await browser.newPage();
  const { width, height, base64 } = await blank.evaluate(pixelsOf, shot.toString("base64"));
  await blank.close();
  writeFileSync(file, indexedPng({ width, height, rgba: Buffer.from(base64, "base64") }));
}

/** In a page, which can read a PNG. */
async function pixelsOf(png) {
  const answer = await fetch(`data:image/png;base64,${png}`);
  const bitmap = await createImageBitmap(await answer.blob());
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const reader = new FileReader();
  reader.readAsDataURL(new Blob([data]));
  await new Promise((resolve) => reader.addEventListener("load", resolve));
  return { width, height, base64: reader.result.split(",")[1] };
}

/** A PNG (RFC 2083) of 8 bits a pixel. The most frequent colours stay as they are, of the others each becomes the nearest of these. */
function indexedPng({ width, height, rgba }) {
  const pixels = new Uint32Array(rgba.buffer, rgba.byteOffset, width * height);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const byCount = [...counts].toSorted(([, one], [, other]) => other - one).map(([colour]) => colour);
  const palette = byCount.slice(0, maxColours);
  const indexes = new Map(byCount.map((colour) => [colour, nearest(palette, colour)]));
  // Each row begins with its filter, which is none.
  const rows = Buffer.alloc(height * (width + 1));
  pixels.forEach((pixel, at) => (rows[at + Math.floor(at / width) + 1] = indexes.get(pixel)));
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits, which are indexes of a palette.
  header.set([8, 3], 8);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("PLTE", Buffer.from(palette.flatMap(channelsOf))),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

const channelsOf = (colour) => [colour & 0xff, (colour >> 8) & 0xff, (colour >> 16) & 0xff];

function nearest(palette, colour) {
  const wanted = channelsOf(colour);
  const distances = palette.map((known) =>
    channelsOf(known).reduce((sum, channel, index) => sum + (channel - wanted[index]) ** 2, 0),
  );
  return distances.indexOf(Math.min(...distances));
}

function chunk(type, data) {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const ends = Buffer.alloc(8);
  ends.writeUInt32BE(data.length, 0);
  ends.writeUInt32BE(crc32(typed), 4);
  return Buffer.concat([ends.subarray(0, 4), typed, ends.subarray(4)]);
}
