import type { Delivery } from "@countersign/sandbox";
import type { CommandIo } from "../command-io.ts";
import { createPaint } from "../paint.ts";
import { printable } from "../printable.ts";
import { shorten, tableFor, type Column } from "../table.ts";

const columns: readonly Column[] = [
  { title: "id", width: 4, whole: true },
  { title: "state", width: 9, whole: true },
  { title: "tries", whole: true },
  { title: "last answer", width: 18 },
  { title: "next", width: 9, whole: true },
  { title: "events", width: 20 },
  { title: "url", width: 30 },
];

/** The deliveries as lines of a table; those of a later call stand in the same columns. */
export interface DeliveriesReport {
  readonly head: string;
  readonly lines: (deliveries: readonly Delivery[]) => string;
}

/** A report for people on deliveries of which some are known already. */
export function deliveriesReport(known: readonly Delivery[], io: CommandIo): DeliveriesReport {
  const paint = createPaint(io.colours);
  const now = io.clock() * 1000;
  const { head, row } = tableFor(
    columns,
    known.map((delivery) => cells(delivery, now)),
    io.columns,
  );
  return {
    head: head === "" ? "" : `${paint("bold", head.trimEnd())}\n`,
    lines: (deliveries) =>
      deliveries
        .map((delivery) => {
          const text = row(cells(delivery, io.clock() * 1000)).trimEnd();
          return `${delivery.state === "pending" ? text : paint(colourOf(delivery), text)}\n`;
        })
        .join(""),
  };
}

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
    return `${state === "pending" ? text : paint(colourOf(delivery), text)}\n`;
  };
}

function cells(delivery: Delivery, now: number): string[] {
  const { id, url, state, attempts, nextAttemptAt } = delivery;
  const next = nextAttemptAt === undefined ? "-" : timeOf(nextAttemptAt, now);
  return [
    `#${id}`,
    state,
    String(attempts.length),
    lastAnswer(delivery),
    next,
    eventsOf(delivery),
    printable(url),
  ];
}

function eventsOf({ eventTypes }: Delivery): string {
  const [first = "no event", ...others] = eventTypes;
  return printable(others.length === 0 ? first : `${first} and ${others.length} more`);
}

function colourOf({ state }: Delivery): "green" | "red" {
  return state === "delivered" ? "green" : "red";
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
