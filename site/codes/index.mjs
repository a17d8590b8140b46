// What stands on the page of codes, in its order.
import { bodies } from "./bodies.mjs";
import { noticesOfKeys, refusalsOfKeys } from "./keys.mjs";
import { signatures } from "./signatures.mjs";
import { refusalsOfTransactions } from "./transactions.mjs";
import { notices, refusalsOfWebhooks } from "./webhooks.mjs";
import { noticesOfWork, refusalsOfWork } from "./work.mjs";

const pick = (all, test) => Object.fromEntries(Object.entries(all).filter(([code]) => test(code)));
const isAddress = (code) => /^ip-|^allowlist-|^trust-proxy/.test(code);
const isPayout = (code) => /^payout-|^business-|^path-|^method-not/.test(code);
const isBody = (code) => !isAddress(code) && !isPayout(code);

/** Groups of codes: `codes` has, by code, status, who tells it, cause, remedy, and what makes it happen. */
export const groups = [
  {
    title: "Payouts and their keys",
    codes: { ...pick(bodies, isPayout), ...refusalsOfKeys, ...refusalsOfTransactions },
  },
  { title: "Addresses and proxies", codes: pick(bodies, isAddress) },
  { title: "Signatures", codes: signatures },
  { title: "Bodies, digests and JSON", codes: pick(bodies, isBody) },
  { title: "Webhooks", codes: refusalsOfWebhooks },
  { title: "Tasks and outcomes", codes: { ...refusalsOfWork, ...noticesOfWork } },
  { title: "Notices about keys", codes: noticesOfKeys },
  { title: "Other notices", codes: notices },
];

/** Every code and what is said of it. */
export const codes = new Map(groups.flatMap((group) => Object.entries(group.codes)));
