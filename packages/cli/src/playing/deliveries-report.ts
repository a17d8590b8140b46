import type { Delivery } from "@countersign/sandbox";
import { createPaint, type Paint } from "../paint.ts";
import { printable } from "../printable.ts";

const columns = [
  { title: "webhook", width: 36 },
  { title: "endpoint", width: 36 },
  { title: "state", width: 9 },
  { title: "attempts", width: 8 },
  { title: "last answer", width: 24 },
  { title: "next attempt", width: 24 },
] as const;

/** The head of the table. */
export function formatDeliveriesHead(colours: boolean): string {
  return createPaint(colours)("bold", line(columns.map(({ title }) => title)));
}

/** One line of the table for each delivery. The widths are fixed, so that lines that follow later stand in their columns. */
export function formatDeliveries(deliveries: readonly Delivery[], colours: boolean): string {
  const paint = createPaint(colours);
  return deliveries.map((delivery) => deliveryLine(delivery, paint)).join("");
}

function deliveryLine(delivery: Delivery, paint: Paint): string {
  const { webhookId, endpointId, state, attempts, nextAttemptAt } = delivery;
  const text = line([
    printable(webhookId),
    printable(endpointId),
    state,
    String(attempts.length),
    lastAnswer(delivery),
    nextAttemptAt === undefined ? "-" : new Date(nextAttemptAt).toISOString(),
  ]);
  if (state === "pending") return text;
  return paint(state === "delivered" ? "green" : "red", text);
}

function lastAnswer({ attempts }: Delivery): string {
  const last = attempts.at(-1);
  if (last === undefined) return "-";
  return String(last.status ?? last.error ?? "no answer");
}

function line(cells: readonly string[]): string {
  const padded = cells.map((cell, index) => cell.padEnd(columns[index]?.width ?? 0));
  return `${padded.join("  ").trimEnd()}\n`;
}
