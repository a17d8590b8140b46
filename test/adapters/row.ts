import type { Demand } from "./answers.ts";
import type { WireRequest } from "../support/servers/http-client.ts";
import type { AdapterName, Scene } from "./scene.ts";

/** One row of the table: an app, a request, and what every adapter has to answer. */
export interface Row {
  readonly title: string;
  readonly scene: () => Scene;
  /** Method, path, header lines and bytes, as they are sent. */
  readonly request: () => WireRequest;
  readonly answer: Demand;
  /** The code in the log. Default: nothing is refused. */
  readonly code?: string;
  /** How often the handler begins. Default: once where nothing is refused, or where it is what refuses. */
  readonly ran?: number;
  readonly recorded?: "free" | "running" | "done" | "held";
  /** Adapters that cannot send or know what the row is about, and what they do instead. */
  readonly except?: Readonly<Partial<Record<AdapterName, Exception>>>;
}

export interface Exception {
  readonly why: string;
  /** `unsendable`: the row does not reach the adapter. */
  readonly answer: Demand | "unsendable";
  /** The code in the log, where there is one. */
  readonly code?: string;
}
