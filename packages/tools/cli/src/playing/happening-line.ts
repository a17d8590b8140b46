import type { Delivery } from "@countersign/sandbox";
import type { CommandIo } from "../command-io.ts";
import { createPaint, printable } from "../output.ts";

/** What is shown of a delivery. */
export interface Happening extends Pick<Delivery, "id" | "state" | "eventTypes" | "nextAttemptAt"> {
  readonly attempts: readonly {
    readonly at: number;
    readonly status?: number | undefined;
    readonly error?: string | undefined;
  }[];
}

/** One line for each attempt as it happens. */
export function happeningLine(io: CommandIo): (delivery: Happening) => string {
  const paint = createPaint(io.colours);
  return ({ id, state, attempts, nextAttemptAt, eventTypes }) => {
    const now = io.clock() * 1000;
    const last = attempts.at(-1);
    const answer = last === undefined ? "-" : String(last.status ?? last.error ?? "no answer");
    const [first = "no event", ...others] = eventTypes;
    const events = printable(others.length === 0 ? first : `${first} and ${others.length} more`);
    const columns = [
      timeOf(last?.at ?? now, now),
      `#${id}`.padEnd(4),
      state.padEnd(9),
      answer.padEnd(3),
      nextAttemptAt === undefined ? events : `${events.padEnd(34)}  again ${timeOf(nextAttemptAt, now)}`,
    ];
    const line = columns.join("  ");
    return `${state === "pending" ? line : paint(state === "delivered" ? "green" : "red", line)}\n`;
  };
}

/** The time of a day in UTC; the day as well where it is another one. */
function timeOf(ms: number, now: number): string {
  const [day = "", time = ""] = new Date(ms).toISOString().split("T");
  const short = `${time.slice(0, 8)}Z`;
  return Math.abs(now - ms) < 43_200_000 ? short : `${day} ${short}`;
}
