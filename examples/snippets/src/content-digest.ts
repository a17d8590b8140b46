import {
  contentDigest,
  createContentDigest,
  wantContentDigest,
} from "@countersign/content-digest";
import { guardErrors } from "@countersign/express";
import express, { type Express } from "express";

export const app: Express = express();

app.post(
  "/documents",
  contentDigest({ algorithms: ["sha-256"] }),
  (req, res) => {
    res.json({ verifiedBytes: req.rawBody?.length });
  },
);

app.use(
  guardErrors({
    unauthorizedHeaders: {
      "Want-Content-Digest": wantContentDigest(["sha-256"]),
    },
  }),
);

// The sender's side: the digest of the very bytes that are sent.
export const digestOf = (body: string): string =>
  createContentDigest(Buffer.from(body));
