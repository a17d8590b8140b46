const nanosecondsPerSecond = 1_000_000_000n;
const nanosecondsPerMillisecond = 1_000_000n;

/** `YYYY-MM-DDThh:mm:ss.fffffffffZ`, always with nine fraction digits. Throws a RangeError outside the years 0 to 9999. */
export function formatTimestamp(epochNanoseconds: bigint): string {
  const fraction = modulo(epochNanoseconds, nanosecondsPerSecond);
  const seconds = (epochNanoseconds - fraction) / nanosecondsPerSecond;
  const text = new Date(Number(seconds) * 1000).toISOString();
  if (text.length !== "2024-01-02T03:04:05.000Z".length) {
    throw new RangeError("formatTimestamp: a timestamp has a year of four digits");
  }
  return `${text.slice(0, 19)}.${String(fraction).padStart(9, "0")}Z`;
}

/** Nanoseconds since 1970 that grow with every call: two events of the same millisecond keep their order. */
export function createNanosecondClock(clock: () => number): () => bigint {
  let last = 0n;
  return () => {
    const now =
      BigInt(Math.floor(clock())) * nanosecondsPerMillisecond +
      modulo(process.hrtime.bigint(), nanosecondsPerMillisecond);
    last = now > last ? now : last + 1n;
    return last;
  };
}

function modulo(value: bigint, divisor: bigint): bigint {
  return ((value % divisor) + divisor) % divisor;
}
