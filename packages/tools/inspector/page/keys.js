// Keys as they were seen in the traffic of this process.

import { curlLine, paths } from "./calls.js";
import { badge, code, html, openedLines, throttled, time, When } from "./kit.js";
import { get } from "./service.js";

export function keysView(_overview, redraw) {
  let keys = [];
  async function load() {
    const overview = await get(paths.overview);
    keys = overview.keys.toSorted((one, other) => (one.keyid < other.keyid ? -1 : 1));
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
        <section class="card">
          <h2>Keys of signers</h2>
          ${keys.length === 0 ? html`<p class="hint">${noKey}</p>` : table(keys)}
        </section>
        ${openedLines([["Keys", curlLine(paths.overview)]])}
      </div>`,
  };
}

const noKey =
  "No signature was seen yet. A key stands here as soon as one is verified with it, or refused under its name.";

const columns = {
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

const names = Object.keys(columns);

/** A table that a telephone shows as a list: its parts say their roles, which their display takes from them. */
function table(keys) {
  return html`<table role="table" aria-label="Keys of signers">
    <thead role="rowgroup">
      <tr role="row">
        ${names.map((name) => html`<th role="columnheader" scope="col">${name}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${keys.map(
        (key) =>
          html`<tr role="row" key=${key.keyid}>
            ${names.map((name) => html`<td role="cell" data-label=${name}>${columns[name](key)}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;
}
