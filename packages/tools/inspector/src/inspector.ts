import {
  createChangeStream,
  createPageToken,
  listen,
  pageFiles,
  pageUrlOf,
  refuseUnknownPath,
  requirePageToken,
  sendProblem,
} from "./loopback/index.ts";
import express from "express";
import { resolveOptions, type InspectorOptions } from "./options.ts";
import { Recorder, type ChangeKind } from "./recorder.ts";
import { inspectorRoutes } from "./routes.ts";
import { maskerOfOptions } from "./secrets.ts";

/** The inspector as it runs. */
export interface Inspector {
  /** Where it listens, without a slash at the end. */
  readonly url: string;
  /** The page, with the token of this start as its fragment: for whoever develops here, and for no log that others read. */
  readonly pageUrl: string;
  /** Hears of nothing more, and ends when requests under way are answered. */
  close(): Promise<void>;
}

const service = "the inspector";
const pageFolder = new URL("../page/", import.meta.url);

/**
 * Shows the requests that the guards of this process decide on from now on: on a server of its own, on loopback, to whoever has its
 * address. It keeps no process alive. Rejects with an OptionError, in production always, or with the error of node:net when the port
 * cannot be had.
 */
export async function inspector(options: InspectorOptions = {}): Promise<Inspector> {
  const resolved = await resolveOptions(options);
  const mask = maskerOfOptions(resolved);
  const stream = createChangeStream<ChangeKind>({ service, counts: () => recorder.requests.counts });
  const recorder: Recorder = new Recorder({ ...resolved, changed: stream.changed });
  const shown = { options: resolved, recorder, mask };
  const token = createPageToken();
  const app = express().disable("x-powered-by").disable("etag");
  app.use(pageFiles(pageFolder), requirePageToken(token, mask), (_req, res, next) => {
    res.set("Cache-Control", "no-store");
    next();
  });
  app.use(inspectorRoutes(shown, stream), refuseUnknownPath, sendProblem({ service }));
  const stop = (): void => {
    recorder.close();
    stream.close();
  };
  try {
    const listening = await listen(app, { ...resolved, isUnref: true });
    let closed: Promise<void> | undefined;
    return {
      url: listening.url,
      pageUrl: pageUrlOf(listening.url, token),
      close() {
        if (closed === undefined) stop();
        return (closed ??= listening.close());
      },
    };
  } catch (error) {
    stop();
    throw error;
  }
}
