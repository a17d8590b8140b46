// What differs by one from a limit finds a comparison that is off by one.
const numbers = [
  "0 -0 -1 1 9 10 15 16 17 31 32 33 64 65 127 128 129 255 256 4095 4096 4097 65535 65536 2147483647",
  "2147483648 4294967295 4294967296 9007199254740991 9007199254740993 999999999999999",
  "1000000000000000 0.1 1.0 1e400 00",
].flatMap((line) => line.split(" "));
const mostSteps = 6;

/**
 * Makes the function that changes an input: one to six steps, each decided by `random`. Never longer than `maxLength`.
 * @param {{ random: ReturnType<typeof import("./random.mjs").createRandom>, dictionary: readonly string[], maxLength: number }} how
 * @returns {(input: Buffer, other: Buffer) => Buffer} `other` is a second input, for splices
 */
export function createMutator({ random, dictionary, maxLength }) {
  const tokens = [...dictionary, ...dictionary, ...numbers].map((token) => Buffer.from(token, "latin1"));
  const steps = [
    flipBit,
    setByte,
    insertByte,
    removeChunk,
    duplicateChunk,
    moveChunk,
    splice,
    splice,
    insertToken,
    insertToken,
    replaceByToken,
    changeNumber,
    swapCase,
  ];

  return (input, other) => {
    let bytes = Buffer.from(input);
    for (let count = 1 + random.below(mostSteps); count > 0; count -= 1) {
      const step = random.pick(steps);
      bytes = step(bytes, other).subarray(0, maxLength);
    }
    return bytes;
  };

  function flipBit(bytes) {
    if (bytes.length > 0) bytes[random.below(bytes.length)] ^= 1 << random.below(8);
    return bytes;
  }

  function setByte(bytes) {
    if (bytes.length > 0) bytes[random.below(bytes.length)] = anyByte(bytes);
    return bytes;
  }

  function insertByte(bytes) {
    const at = random.below(bytes.length + 1);
    return put(bytes, at, at, Buffer.of(anyByte(bytes)));
  }

  function removeChunk(bytes) {
    const [start, end] = chunkOf(bytes);
    return put(bytes, start, end, Buffer.alloc(0));
  }

  function duplicateChunk(bytes) {
    const [start, end] = chunkOf(bytes);
    const times = random.below(8) === 0 ? 1 + random.below(64) : 1;
    return put(
      bytes,
      end,
      end,
      Buffer.concat(Array.from({ length: times }, () => bytes.subarray(start, end))),
    );
  }

  function moveChunk(bytes) {
    const [start, end] = chunkOf(bytes);
    const at = random.below(bytes.length + 1);
    return put(bytes, at, at, bytes.subarray(start, end));
  }

  function splice(bytes, other) {
    const [start, end] = chunkOf(bytes);
    const [from, to] = chunkOf(other);
    return put(bytes, start, random.below(2) === 0 ? start : end, other.subarray(from, to));
  }

  function insertToken(bytes) {
    const at = random.below(bytes.length + 1);
    return put(bytes, at, at, random.pick(tokens));
  }

  function replaceByToken(bytes) {
    const [start, end] = chunkOf(bytes);
    return put(bytes, start, end, random.pick(tokens));
  }

  function changeNumber(bytes) {
    const found = [...bytes.toString("latin1").matchAll(/\d+/g)];
    if (found.length === 0) return insertToken(bytes);
    const { 0: digits, index } = random.pick(found);
    const changed =
      random.below(2) === 0 ? random.pick(numbers) : String(BigInt(digits) + BigInt(random.below(5)) - 2n);
    return put(bytes, index, index + digits.length, Buffer.from(changed));
  }

  function swapCase(bytes) {
    if (bytes.length > 0) {
      const at = random.below(bytes.length);
      if (/[a-z]/i.test(String.fromCharCode(bytes[at]))) bytes[at] ^= 0x20;
    }
    return bytes;
  }

  // Half of them occur in the input: a second delimiter says more than a byte that no rule knows.
  function anyByte(bytes) {
    return random.below(2) === 0 || bytes.length === 0
      ? random.below(256)
      : bytes[random.below(bytes.length)];
  }

  function chunkOf(bytes) {
    if (bytes.length === 0) return [0, 0];
    const start = random.below(bytes.length);
    const longest = random.below(2) === 0 ? Math.min(8, bytes.length - start) : bytes.length - start;
    return [start, start + 1 + random.below(longest)];
  }

  function put(bytes, start, end, inserted) {
    return Buffer.concat([bytes.subarray(0, start), inserted, bytes.subarray(end)]);
  }
}
