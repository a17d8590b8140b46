// Keys and nonces as they were seen in the traffic of this process.

import { curlLine, paths } from "./calls.js";
import { badge, h, throttled, time } from "./elements.js";
import { keyedList } from "./keyed.js";
import { code, apiCalls, table, when } from "./parts.js";
import { get } from "./service.js";

export function keysView() {
  const keys = section({
    title: "Keys of signers",
    columns: ["keyid", "Subject", "Uses", "Last used", "Refused", "Valid until"],
    parts: keyParts,
    nothing:
      "No signature was seen yet. A key stands here as soon as one is verified with it, or refused under its name.",
  });
  const nonces = section({
    title: "Nonces",
    columns: ["Nonce", "keyid", "Seen", "Outcome", "Request"],
    parts: nonceParts,
    nothing: "No nonce was seen yet: a signature has one in its parameter nonce, and each is taken once.",
  });
  const calls = [
    ["Keys", curlLine(paths.overview, location.origin)],
    ["Nonces", curlLine(paths.nonces, location.origin)],
  ];
  const element = h("div", { class: "column" }, keys.element, nonces.element, apiCalls(calls));
  async function load() {
    const [{ keys: ofKeys, now }, { nonces: ofNonces }] = await Promise.all([
      get(paths.overview),
      get(paths.nonces),
    ]);
    keys.show(ofKeys.toSorted(byName).map((key) => [key.keyid, { ...key, isOver: isOver(key, now) }]));
    nonces.show(ofNonces.map((nonce) => [`${nonce.requestId} ${nonce.keyid} ${nonce.nonce}`, nonce]));
  }
  const reload = throttled(300, () => void load().catch(() => {}));
  return {
    element,
    open: reload,
    refresh: reload,
    change({ kinds, requests }, isShown) {
      if (isShown && (kinds.includes("keys") || requests.length > 0)) reload();
    },
  };
}

const byName = (one, other) => (one.keyid < other.keyid ? -1 : 1);
const isOver = ({ notAfter }, now) => notAfter !== undefined && notAfter * 1000 < now;

function section({ title, columns, parts, nothing }) {
  const { element: shown, body, cells } = table(title, columns);
  const empty = h("p", { class: "hint" }, nothing);
  const rows = keyedList(body, (value) => {
    const element = h("tr", { role: "row" });
    let last;
    const update = (now) => {
      const text = JSON.stringify(now);
      if (text === last) return;
      last = text;
      element.replaceChildren(...cells(parts(now)));
    };
    update(value);
    return { element, update };
  });
  const element = h("section", { class: "card" }, h("h2", {}, title), shown, empty);
  return {
    element,
    show(entries) {
      rows.update(entries);
      shown.hidden = entries.length === 0;
      empty.hidden = entries.length > 0;
    },
  };
}

function keyParts({ keyid, subject, uses, lastUsedAt, refused, notAfter, isOver: isEnded }) {
  return [
    code(keyid),
    subject === undefined ? "\u2013" : code(subject),
    uses.toLocaleString("en"),
    lastUsedAt === undefined ? "never" : when(lastUsedAt),
    refused === 0 ? "0" : badge(refused.toLocaleString("en"), "bad"),
    notAfter === undefined
      ? uses === 0
        ? "\u2013"
        : "without end"
      : h("span", {}, time(notAfter * 1000), " ", isEnded && badge("ended", "bad")),
  ];
}

function nonceParts({ nonce, keyid, at, outcome, requestId }) {
  return [
    code(nonce),
    code(keyid),
    time(at),
    badge(outcome, outcome === "fresh" ? "good" : "bad"),
    h("a", { href: `#/requests/${requestId}` }, `#${requestId}`),
  ];
}
