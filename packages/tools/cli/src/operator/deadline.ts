import { exitCodes } from "../command-io.ts";
import { StoreFailure } from "./store-failure.ts";

/** For how long a command waits for the store to open, in milliseconds. */
export const openTimeoutMs = 5000;

/** The promise's result, or a StoreFailure when it takes longer than a store may to open. The work itself goes on: the caller ends it. */
export function openedInTime<T>(shown: string, work: Promise<T>): Promise<T> {
  return withinTime(openTimeoutMs, work, (why) => {
    return new StoreFailure(`${shown} cannot be reached: ${why}`, exitCodes.unreachable);
  });
}

/** The promise's result, or the error that `late` makes when `timeoutMs` have passed. The work itself goes on. */
export async function withinTime<T>(
  timeoutMs: number,
  work: Promise<T>,
  late: (why: string) => Error,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late(`no answer within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([work, passed]);
  } finally {
    clearTimeout(timer);
  }
}
