import { exitCodes } from "../command-io.ts";
import { StoreFailure } from "./store-failure.ts";

/** For how long a command waits for the store to open, in milliseconds. */
export const openTimeoutMs = 5000;

/** The promise's result, or a StoreFailure when `timeoutMs` have passed. The work itself goes on: the caller has to end it. */
export async function withinTime<T>(shown: string, timeoutMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const message = `${shown} cannot be reached: no answer within ${timeoutMs} ms`;
    timer = setTimeout(() => reject(new StoreFailure(message, exitCodes.unreachable)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
