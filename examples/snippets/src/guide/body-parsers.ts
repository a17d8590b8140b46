import { contentDigest } from "@countersign/content-digest";
import { guardErrors } from "@countersign/express";
import express from "express";

export const app = express();
// #region parsers
app.use(contentDigest());
app.use(express.json(), express.urlencoded({ extended: false }));
app.post("/quotes", (req, res) => {
  // JSON is parsed strictly, a form by express.urlencoded(): both from the
  // bytes that contentDigest() has checked.
  res.json({ received: req.body });
});
app.use(guardErrors());
// #endregion parsers
