import { guardErrors } from "@countersign/express";
import {
  verifiedCredential,
  webhookBasicAuth,
} from "@countersign/webhook-basic-auth";
import express, { type Express } from "express";

/**
 * Both passwords admit. Drop the old one when req.webhook.credentialIndex is
 * no longer 1.
 */
export function createApp(newPassword: string, oldPassword: string): Express {
  const app = express();
  const credentials = [
    { username: "lending-service", password: newPassword },
    { username: "lending-service", password: oldPassword },
  ];
  app.get("/reports", webhookBasicAuth({ credentials }), (req, res) => {
    console.log(
      verifiedCredential(req)?.username,
      req.webhook?.credentialIndex,
    );
    res.end();
  });
  app.use(guardErrors());
  return app;
}
