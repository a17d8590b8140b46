// Orders as bytes, and how they may be answered.
import { signOrder, type OrderPlan } from "./policy-scene.ts";

/** How a request is answered: the statuses of all answers on the connection, and what the checks refused. */
export interface Outcome {
  readonly statuses: readonly number[];
  readonly codes: readonly string[];
}

export interface SocketRow {
  readonly title: string;
  readonly bytes: () => Buffer;
  /** Versions of Node differ in what their parser refuses by itself: one of these. A 200 alone means that the handler ran. */
  readonly outcomes: readonly Outcome[];
  /** The client leaves behind its last byte. */
  readonly leaves?: boolean;
}

/** An order as bytes; every part can be another one. */
export interface RawOrder {
  readonly plan?: OrderPlan;
  readonly version?: string;
  readonly start?: string;
  readonly host?: readonly string[];
  /** In the place of Content-Length. */
  readonly framing?: readonly string[];
  readonly lines?: readonly string[];
  /** In the place of the lines that were signed. */
  readonly change?: (lines: readonly string[]) => readonly string[];
  readonly body?: (body: string) => string;
  readonly keepsAlive?: boolean;
}

/** A character is a byte. */
export function rawOrder(order: RawOrder = {}): Buffer {
  const { plan, version = "HTTP/1.1", host = ["Host: a.example"], lines = [], change, keepsAlive } = order;
  const { method, path, headers, body } = signOrder(plan);
  const text = body.toString("latin1");
  const signed = headers.flatMap((name, index) =>
    index % 2 === 0 ? [`${name}: ${headers[index + 1] ?? ""}`] : [],
  );
  const head = [
    order.start ?? `${method} ${path} ${version}`,
    ...host,
    ...(keepsAlive ? [] : ["Connection: close"]),
    ...(order.framing ?? [`Content-Length: ${text.length}`]),
    ...(change?.(signed) ?? signed),
    ...lines,
  ];
  return Buffer.from([...head, "", order.body?.(text) ?? text].join("\r\n"), "latin1");
}

export const server = (...statuses: readonly number[]): readonly Outcome[] =>
  statuses.map((status) => ({ statuses: [status], codes: [] }));
export const check = (code: string, status = 401): readonly Outcome[] => [
  { statuses: [status], codes: [code] },
];
export const bad: readonly Outcome[] = server(400);
/** The server's parser fails behind the head, while the check is at work or has spoken. */
export const torn = (code: string, status = 401): readonly Outcome[] => [
  ...check(code, status),
  { statuses: [400], codes: [] },
  { statuses: [400], codes: [code] },
  { statuses: [status, 400], codes: [code] },
];
export const good: readonly Outcome[] = server(200);

export const chunked: readonly string[] = ["Transfer-Encoding: chunked"];
export const inChunks = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
export const replaced =
  (name: string, change: (value: string) => string) =>
  (lines: readonly string[]): readonly string[] =>
    lines.map((line) =>
      line.startsWith(`${name}: `) ? `${name}: ${change(line.slice(name.length + 2))}` : line,
    );
export const without =
  (...names: readonly string[]) =>
  (lines: readonly string[]): readonly string[] =>
    lines.filter((line) => !names.some((name) => line.startsWith(`${name}: `)));

export type Case = readonly [title: string, order: RawOrder | (() => Buffer), outcomes: readonly Outcome[]];

/** A row of the table. */
export function socketRow([title, order, outcomes]: Case): SocketRow {
  return { title, bytes: typeof order === "function" ? order : () => rawOrder(order), outcomes };
}
