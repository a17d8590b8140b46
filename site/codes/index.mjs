// What makes each code of the page of codes happen in the built packages.
import { bodies } from "./bodies.mjs";
import { noticesOfKeys, refusalsOfKeys } from "./keys.mjs";
import { signatures } from "./signatures.mjs";
import { refusalsOfTransactions } from "./transactions.mjs";
import { notices, refusalsOfWebhooks } from "./webhooks.mjs";
import { noticesOfWork, refusalsOfWork } from "./work.mjs";

/** By code: makes it happen, and gives what the packages said. */
export const provocations = {
  ...bodies,
  ...refusalsOfKeys,
  ...refusalsOfTransactions,
  ...signatures,
  ...refusalsOfWebhooks,
  ...refusalsOfWork,
  ...noticesOfWork,
  ...noticesOfKeys,
  ...notices,
};
