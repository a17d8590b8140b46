import { createChangeStream, createPageToken, listen, pageFiles, sendProblems } from "../loopback/index.ts";
import express from "express";
import { resolveOptions, type InspectorOptions } from "./options.ts";
import { Recorder, type ChangeKind } from "./recorder.ts";
import { inspectorRoutes } from "./routes.ts";
import { maskerOfOptions } from "./secrets.ts";

/** A running {@link inspector}. */
export interface Inspector {
  /** Where it listens, without a slash at the end. */
  readonly url: string;
  /** The page, with the token of this start as its fragment. Keep it out of logs that others read. */
  readonly pageUrl: string;
  /** Ends every subscription; resolves when requests under way are answered. */
  close(): Promise<void>;
}

const service = "the inspector";
const pageFolder = new URL("../../page/inspector/", import.meta.url);

/**
 * Shows this process's guarded requests from now on. It has a loopback server of its own, for whoever has the address. Keeps no process alive.
 * Rejects with an OptionError, in production always, or with node:net's error for the port.
 */
export async function inspector(options: InspectorOptions = {}): Promise<Inspector> {
  const resolved = await resolveOptions(options);
  const mask = maskerOfOptions(resolved);
  const stream = createChangeStream<ChangeKind>({ service, counts: () => recorder.requests.counts });
  const recorder: Recorder = new Recorder({ ...resolved, changed: stream.changed });
  const shown = { options: resolved, recorder, mask };
  const token = createPageToken();
  const app = express().disable("x-powered-by").disable("etag");
  app.use(pageFiles(pageFolder), token.require(mask), (_req, res, next) => {
    res.set("Cache-Control", "no-store");
    next();
  });
  app.use(inspectorRoutes(shown, stream), ...sendProblems({ service }));
  const stop = (): void => {
    recorder.close();
    stream.close();
  };
  try {
    const listening = await listen(app, { ...resolved, isUnref: true });
    let closed: Promise<void> | undefined;
    return {
      url: listening.url,
      pageUrl: token.urlOn(listening.url),
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
