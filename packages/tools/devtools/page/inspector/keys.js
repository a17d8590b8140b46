// Keys as they were seen in the traffic of this process.

import { curlLine, paths } from "./calls.js";
import { badge, code, html, openedLines, table, throttled, time, When } from "./kit.js";
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
          ${keys.length === 0 ? html`<p class="hint">${noKey}</p>` : table("Keys of signers", columns, keys)}
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
