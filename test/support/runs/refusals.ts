import { isGuardError, type GuardError } from "@countersign/core";

/** An `onReject` for guardErrors(), and the refusals that it heard of. */
export interface RefusalRecorder {
  readonly refusals: GuardError[];
  readonly onReject: (error: unknown) => void;
}

export function recordRefusals(): RefusalRecorder {
  const refusals: GuardError[] = [];
  const onReject = (error: unknown): void => {
    if (isGuardError(error)) refusals.push(error);
  };
  return { refusals, onReject };
}
