import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export class Lines {
  readonly #said: string[] = [];
  readonly #ended: Promise<never>;
  #wakers: (() => void)[] = [];

  constructor(child: ChildProcess) {
    if (child.stdout === null) throw new Error("stdout is not a pipe");
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.#said.push(line);
      for (const wake of this.#wakers.splice(0)) wake();
    });
    this.#ended = once(child, "exit").then(([code, signal]) => {
      throw new Error(`the payer ended with ${String(code ?? signal)}`);
    });
    this.#ended.catch(() => {});
  }

  /** Takes the next line with this beginning, also one that was said before. */
  async next(beginning: string): Promise<string> {
    for (;;) {
      const index = this.#said.findIndex((line) => line.startsWith(beginning));
      const [line] = index < 0 ? [] : this.#said.splice(index, 1);
      if (line !== undefined) return line;
      const more = new Promise<void>((resolve) => {
        this.#wakers.push(resolve);
      });
      await Promise.race([more, this.#ended]);
    }
  }
}
