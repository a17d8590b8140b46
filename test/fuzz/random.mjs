import { createHash } from "node:crypto";

/**
 * Numbers that the text `seed` decides (sfc32): `below(n)` is a whole number from 0 to n - 1, `pick` an element of a list.
 * @param {string} seed
 */
export function createRandom(seed) {
  const digest = createHash("sha256").update(seed).digest();
  let [a, b, c, counter] = [0, 4, 8, 12].map((offset) => digest.readInt32LE(offset));

  function next() {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }
  const below = (limit) => next() % limit;
  return { below, pick: (list) => list[below(list.length)] };
}
