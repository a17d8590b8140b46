import { isGuardError, quoteForLog } from "@countersign/core";

export interface Explanation {
  /** Stable identifier in kebab-case; the page "Explain a refused request" lists them. `verifies` when nothing is wrong. */
  readonly what: string;
  /** One sentence that says what has to change. Text of the request in it is quoted, escaped and cut. */
  readonly sentence: string;
  /** The code of the refusal; undefined when nothing is refused. */
  readonly code: string | undefined;
  readonly details: readonly string[];
}

export type Remedy = readonly [what: string, sentence: string];

const maxSentence = 700;

/** The sentence is cut: a signature may name many components. */
export function explanation(
  [what, sentence]: Remedy,
  code: string | undefined,
  details: readonly string[] = [],
): Explanation {
  const cut = sentence.length > maxSentence ? `${sentence.slice(0, maxSentence)}...` : sentence;
  return { what, sentence: cut, code, details };
}

export function verifies(sentence: string, details: readonly string[] = []): Explanation {
  return { what: "verifies", sentence, code: undefined, details };
}

/** The code with which a check refuses; undefined when it admits. Throws what is no refusal. */
export function refusalOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (isGuardError(error)) return error.code;
    throw error;
  }
}

const maxQuoted = 100;

/** Text of the request, made safe for a sentence. */
export function quoted(text: string): string {
  return quoteForLog(text, maxQuoted);
}
