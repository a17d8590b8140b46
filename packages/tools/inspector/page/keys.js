// Keys and nonces as they were seen in the traffic of this process.

import { curlLine, paths } from "./calls.js";
import { badge, code, html, openedLines, throttled, time, When } from "./kit.js";
import { get } from "./service.js";

export function keysView(_overview, redraw) {
  let keys = [];
  let nonces = [];
  async function load() {
    const [overview, seen] = await Promise.all([get(paths.overview), get(paths.nonces)]);
    keys = overview.keys.toSorted((one, other) => (one.keyid < other.keyid ? -1 : 1));
    nonces = seen.nonces;
    redraw();
  }
  const reload = throttled(300, () => void load().catch(() => {}));
  return {
    open: reload,
    refresh: reload,
    change({ changed, kinds }, isShown) {
      if (isShown && (kinds.includes("keys") || changed.length > 0)) reload();
    },
    draw: () =>
      html`<div class="column">
        ${table("Keys of signers", keyColumns, keys, noKey)} ${table("Nonces", nonceColumns, nonces, noNonce)}
        ${openedLines([
          ["Keys", curlLine(paths.overview)],
          ["Nonces", curlLine(paths.nonces)],
        ])}
      </div>`,
  };
}

const noKey =
  "No signature was seen yet. A key stands here as soon as one is verified with it, or refused under its name.";
const noNonce = "No nonce was seen yet: a signature has one in its parameter nonce, and each is taken once.";

const keyColumns = {
  keyid: ({ keyid }) => code(keyid),
  Subject: ({ subject }) => code(subject) ?? "–",
  Uses: ({ uses }) => uses.toLocaleString("en"),
  "Last used": ({ lastUsedAt }) => (lastUsedAt === undefined ? "never" : html`<${When} ms=${lastUsedAt} />`),
  Refused: ({ refused }) => (refused === 0 ? "0" : badge(refused.toLocaleString("en"), "bad")),
  "Valid until": ({ uses, notAfter }) => {
    if (notAfter === undefined) return uses === 0 ? "–" : "without end";
    return html`<span
      >${time(notAfter * 1000)}${" "}${notAfter * 1000 < Date.now() && badge("ended", "bad")}</span
    >`;
  },
};

const nonceColumns = {
  Nonce: ({ nonce }) => code(nonce),
  keyid: ({ keyid }) => code(keyid),
  Seen: ({ at }) => time(at),
  Outcome: ({ outcome }) => badge(outcome, outcome === "fresh" ? "good" : "bad"),
  Request: ({ requestId }) => html`<a href="#/requests/${requestId}">#${requestId}</a>`,
};

/** A table that a telephone shows as a list: its parts say their roles, which their display takes from them. */
function table(title, columns, rows, nothing) {
  const names = Object.keys(columns);
  return html`<section class="card">
    <h2>${title}</h2>
    ${
      rows.length === 0
        ? html`<p class="hint">${nothing}</p>`
        : html`<table role="table" aria-label=${title}>
            <thead role="rowgroup">
              <tr role="row">
                ${names.map((name) => html`<th role="columnheader" scope="col">${name}</th>`)}
              </tr>
            </thead>
            <tbody role="rowgroup">
              ${rows.map(
                (row) =>
                  html`<tr role="row" key=${`${row.requestId} ${row.keyid} ${row.nonce}`}>
                    ${names.map(
                      (name) => html`<td role="cell" data-label=${name}>${columns[name](row)}</td>`,
                    )}
                  </tr>`,
              )}
            </tbody>
          </table>`
    }
  </section>`;
}
