import { isGuardError } from "@countersign/core";

/** The code of the GuardError that `work` throws or rejects with; any other outcome fails. */
export async function codeOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (isGuardError(error)) return `${error.status} ${error.code}`;
    throw error;
  }
  throw new Error("nothing was refused");
}
