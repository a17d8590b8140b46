import type { Point, Points } from "./payer-app.mjs";

export class Gates implements Points {
  readonly #armed: Set<Point>;
  readonly #stopped = new Map<Point, () => void>();
  readonly #awaited = new Map<Point, () => void>();

  constructor(armed: readonly Point[]) {
    this.#armed = new Set(armed);
  }

  arm(point: Point): void {
    this.#armed.add(point);
  }

  reach(point: Point): Promise<void> {
    if (!this.#armed.delete(point)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#stopped.set(point, resolve);
      this.#awaited.get(point)?.();
    });
  }

  block(point: Point): void {
    if (this.#armed.has(point)) throw new Error(`${point} would block the tests; use a process`);
  }

  reached(point: Point): Promise<void> {
    if (this.#stopped.has(point)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#awaited.set(point, resolve);
    });
  }

  go(point: Point): void {
    this.#stopped.get(point)?.();
    this.#stopped.delete(point);
  }
}
