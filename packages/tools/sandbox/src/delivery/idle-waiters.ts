/** Those who wait until nothing is left to do. */
export class IdleWaiters {
  #waiting: Waiter[] = [];

  get any(): boolean {
    return this.#waiting.length > 0;
  }

  add(): Promise<void> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  resolve(): void {
    for (const { resolve } of this.#take()) resolve();
  }

  reject(error: Error): void {
    for (const { reject } of this.#take()) reject(error);
  }

  #take(): Waiter[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}
