import { docsOf } from "../docs.ts";

const windowMs = 60_000;
const maxCodes = 100;

interface Tally {
  readonly code: string;
  lines: number;
  leftOut: number;
  readonly endsAtMs: number;
}

/** Lets a bounded number of lines a minute pass for each code, so that a stranger's requests cannot fill a log. */
export class LineLimit {
  readonly #linesPerMinute: number;
  readonly #tellLeftOut: (text: string, code: string) => void;
  readonly #tallies = new Map<string, Tally>();

  /** `tellLeftOut` is called at the end of a minute in which lines of a code were left out. */
  constructor(linesPerMinute: number, tellLeftOut: (text: string, code: string) => void) {
    this.#linesPerMinute = linesPerMinute;
    this.#tellLeftOut = tellLeftOut;
  }

  /** True if a line of the code may be written now. */
  admits(code: string): boolean {
    const nowMs = performance.now();
    const tally = this.#tallyOf(code, nowMs);
    if (tally.lines < this.#linesPerMinute) {
      tally.lines += 1;
      return true;
    }
    tally.leftOut += 1;
    if (tally.leftOut === 1) setTimeout(() => this.#close(tally), tally.endsAtMs - nowMs).unref();
    return false;
  }

  #tallyOf(code: string, nowMs: number): Tally {
    for (const tally of this.#tallies.values()) if (nowMs >= tally.endsAtMs) this.#close(tally);
    // Our codes are few; an app's own guard may derive codes from what it receives.
    const hasOwn = this.#tallies.has(code) || docsOf(code) !== undefined || this.#tallies.size < maxCodes;
    const counted = hasOwn ? code : "other codes";
    const known = this.#tallies.get(counted);
    if (known !== undefined) return known;
    const tally = { code: counted, lines: 0, leftOut: 0, endsAtMs: nowMs + windowMs };
    this.#tallies.set(counted, tally);
    return tally;
  }

  #close(tally: Tally): void {
    const { code, leftOut } = tally;
    // Both its timer and the next line of its code close it.
    if (this.#tallies.get(code) !== tally) return;
    this.#tallies.delete(code);
    if (leftOut > 0)
      this.#tellLeftOut(`${leftOut} more lines with ${code} were left out within a minute`, code);
  }
}
