// Shrinks a picture of few colours: a PNG with a palette, a third of what a browser writes.
import { crc32, deflateSync } from "node:zlib";

const maxColours = 256;

/** A PNG (RFC 2083) of 8 bits a pixel. The most frequent colours stay as they are, of the others each becomes the nearest of these. */
export function indexedPng({ width, height, rgba }) {
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
