const mostAttempts = 100;

/**
 * The input with every piece left out that `isEnough` does not need: halves first, single bytes last.
 * @param {Buffer} input
 * @param {(candidate: Buffer) => Promise<boolean>} isEnough
 */
export async function shrink(input, isEnough) {
  let smallest = input;
  let attempts = 0;
  for (let size = Math.ceil(input.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let start = 0; start < smallest.length && attempts < mostAttempts; attempts += 1) {
      const candidate = Buffer.concat([smallest.subarray(0, start), smallest.subarray(start + size)]);
      if (await isEnough(candidate)) smallest = candidate;
      else start += size;
    }
  }
  return smallest;
}
