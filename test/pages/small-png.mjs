// Pictures of pages as they are kept: with a palette, a third of the size of the browser's.
import { crc32, deflateSync, inflateSync } from "node:zlib";

const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const channels = 3;
const truecolour = 2;
const indexed = 3;
const mostColours = 256;

/** A PNG with at most 256 colours for one of a screen: 8 bits, RGB, not interlaced. The commonest colours stay as they are. */
export function smallPng(png) {
  const { width, height, pixels } = decode(png);
  const { palette, indexOf } = paletteOf(pixels);
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1)
      rows[y * (width + 1) + 1 + x] = indexOf.get(pixels.readUIntBE((y * width + x) * channels, channels));
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, indexed], 8);
  const colours = Buffer.alloc(palette.length * channels);
  for (const [index, colour] of palette.entries()) colours.writeUIntBE(colour, index * channels, channels);
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("PLTE", colours),
    chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type, data) {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const framed = Buffer.alloc(typed.length + 8);
  framed.writeUInt32BE(data.length, 0);
  typed.copy(framed, 4);
  framed.writeUInt32BE(crc32(typed), typed.length + 4);
  return framed;
}

function decode(png) {
  const data = [];
  let header;
  for (let at = signature.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    const content = png.subarray(at + 8, at + 8 + length);
    if (type === "IHDR") header = content;
    if (type === "IDAT") data.push(content);
    at += length + 12;
  }
  if (header[8] !== 8 || header[9] !== truecolour || header[12] !== 0)
    throw new TypeError("smallPng: not a PNG with 8 bits, RGB, not interlaced");
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  return { width, height, pixels: unfiltered(inflateSync(Buffer.concat(data)), width * channels, height) };
}

/** PNG section 9.2: each row says from which neighbours its bytes are told. */
function unfiltered(rows, stride, height) {
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) {
    const filter = rows[y * (stride + 1)];
    for (let x = 0; x < stride; x += 1) {
      const at = y * stride + x;
      const left = x >= channels ? pixels[at - channels] : 0;
      const above = y > 0 ? pixels[at - stride] : 0;
      const corner = x >= channels && y > 0 ? pixels[at - stride - channels] : 0;
      const told = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter];
      pixels[at] = rows[y * (stride + 1) + 1 + x] + told;
    }
  }
  return pixels;
}

function paeth(left, above, corner) {
  const guess = left + above - corner;
  const [ofLeft, ofAbove, ofCorner] = [left, above, corner].map((value) => Math.abs(guess - value));
  if (ofLeft <= ofAbove && ofLeft <= ofCorner) return left;
  return ofAbove <= ofCorner ? above : corner;
}

function paletteOf(pixels) {
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += channels) {
    const colour = pixels.readUIntBE(at, channels);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const common = [...counts].toSorted(([, one], [, other]) => other - one).slice(0, mostColours);
  const palette = common.map(([colour]) => colour);
  const indexOf = new Map([...counts.keys()].map((colour) => [colour, nearest(palette, colour)]));
  return { palette, indexOf };
}

function nearest(palette, colour) {
  let found = 0;
  let least = Infinity;
  for (const [index, other] of palette.entries()) {
    const distance = [16, 8, 0].reduce(
      (sum, shift) => sum + (((colour >> shift) & 255) - ((other >> shift) & 255)) ** 2,
      0,
    );
    if (distance < least) [found, least] = [index, distance];
  }
  return found;
}
