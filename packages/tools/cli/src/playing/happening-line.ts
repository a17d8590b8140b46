import type { Delivery } from "@countersign/sandbox";
import type { CommandIo } from "../command-io.ts";
import { createPaint } from "../paint.ts";
import { printable } from "../printable.ts";
import { shorten } from "../table.ts";

const usualEvents = 34;

/** One line for each attempt as it happens; in a narrow terminal the events give way. */
export function happeningLine(io: CommandIo): (delivery: Delivery) => string {
  const paint = createPaint(io.colours);
  return (delivery) => {
    const { id, state, attempts, nextAttemptAt } = delivery;
    const now = io.clock() * 1000;
    const time = timeOf(attempts.at(-1)?.at ?? now, now);
    const head = [time, `#${id}`.padEnd(4), state.padEnd(9), lastAnswer(delivery).padEnd(3)].join("  ");
    const again = nextAttemptAt === undefined ? "" : `  again ${timeOf(nextAttemptAt, now)}`;
    const room = (io.columns ?? Infinity) - head.length - again.length - 2;
    const events = shorten(eventsOf(delivery), Math.max(8, room));
    const padded = again === "" ? events : events.padEnd(Math.min(usualEvents, room));
    const text = `${head}  ${padded}${again}`;
    if (state === "pending") return `${text}\n`;
    return `${paint(state === "delivered" ? "green" : "red", text)}\n`;
  };
}

function eventsOf({ eventTypes }: Delivery): string {
  const [first = "no event", ...others] = eventTypes;
  return printable(others.length === 0 ? first : `${first} and ${others.length} more`);
}

function lastAnswer({ attempts }: Delivery): string {
  const last = attempts.at(-1);
  if (last === undefined) return "-";
  return String(last.status ?? last.error ?? "no answer");
}

/** The time of a day in UTC; the day as well where it is another one. */
function timeOf(ms: number, now: number): string {
  const [day = "", time = ""] = new Date(ms).toISOString().split("T");
  const short = `${time.slice(0, 8)}Z`;
  return now - ms < 43_200_000 && ms - now < 43_200_000 ? short : `${day} ${short}`;
}
