import * as fc from "fast-check";

const surrogates = { first: 0xd800, count: 0x800 };

/** Any one character, for `fc.string({ unit: codePoint })`: "binary" of fast-check takes 1.5 s for a table of them all. */
export const codePoint = fc.integer({ min: 0, max: 0x10_ffff - surrogates.count }).map(
  (place) => String.fromCodePoint(place < surrogates.first ? place : place + surrogates.count),
  (text) => {
    if (typeof text !== "string") throw new TypeError("expected a text");
    const point = text.codePointAt(0);
    if (point === undefined || text !== String.fromCodePoint(point)) throw new Error("expected a character");
    if (point < surrogates.first) return point;
    if (point < surrogates.first + surrogates.count) throw new Error("half a character");
    return point - surrogates.count;
  },
);
