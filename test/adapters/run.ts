import type { WireAnswer, WireRequest } from "../support/servers/http-client.ts";
import { comparable, type ExactAnswer } from "./answers.ts";
import type { Row } from "./row.ts";
import { Unsendable, type Adapter, type Scene } from "./scene.ts";

/** What a row is about, on one adapter. */
export interface Observation {
  readonly answer: ExactAnswer | "unsendable";
  readonly codes: readonly string[];
  readonly ran: number;
  readonly recorded: string | undefined;
}

/** Sends the row to the adapter: what was seen, and what the row demands. */
export async function run(
  adapter: Adapter,
  row: Row,
): Promise<{ readonly seen: Observation; readonly demanded: Observation }> {
  const scene = row.scene();
  const opened = await adapter.open(scene);
  try {
    const request = row.request();
    const exception = row.except?.[adapter.name];
    const { answer: demand, code } = exception ?? row;
    const sent = await sendTo(() => opened.send(request));
    const { codes, ran } = scene.trace;
    const observed = { codes: [...codes], ran, recorded: row.recorded && scene.trace.recorded?.() };
    const answer =
      demand === "unknown-route"
        ? await unknownRoute(() => opened.send(elsewhere(request, scene)), request, scene)
        : demand;
    const demandedRan = demand === "unsendable" ? 0 : (row.ran ?? (code === undefined ? 1 : 0));
    return {
      seen: { answer: withoutPath(sent, request.path), ...observed },
      demanded: {
        answer,
        codes: code === undefined ? [] : [code],
        ran: scene.kind === "webhook" ? 0 : demandedRan,
        recorded: row.recorded,
      },
    };
  } finally {
    await opened.close();
  }
}

async function sendTo(send: () => Promise<WireAnswer>): Promise<ExactAnswer | "unsendable"> {
  try {
    return comparable(await send());
  } catch (error) {
    if (error instanceof Unsendable) return "unsendable";
    throw error;
  }
}

/** The same request to a path of the same length where nothing is. */
function elsewhere(request: WireRequest, { path }: Scene): WireRequest {
  const other = request.path.replace(path.slice(1), "x".repeat(path.length - 1));
  return { ...request, path: other };
}

async function unknownRoute(
  send: () => Promise<WireAnswer>,
  request: WireRequest,
  scene: Scene,
): Promise<ExactAnswer | "unsendable"> {
  return withoutPath(await sendTo(send), elsewhere(request, scene).path);
}

// Answers of frameworks to unknown routes name the path.
function withoutPath(answer: ExactAnswer | "unsendable", path: string): ExactAnswer | "unsendable" {
  return answer === "unsendable"
    ? answer
    : { ...answer, body: answer.body.replaceAll(JSON.stringify(path).slice(1, -1), "<path>") };
}
