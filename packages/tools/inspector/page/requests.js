// The requests: a page of the list, which follows what happens, and one of them in full beside it.

import { curlLine, paths } from "./calls.js";
import { block, duration, html, plural, time, visible } from "./kit.js";
import { linkedRow, pagedList, splitView } from "./list.js";
import { requestParts } from "./request.js";
import { get } from "./service.js";
import { outcomeBadge, outcomes } from "./verdicts.js";

const outcomeNames = Object.entries(outcomes).map(([outcome, [word]]) => [outcome, word]);

export function requestsView(overview, redraw) {
  const requests = pagedList({
    redraw,
    pageSize: 50,
    async read(page) {
      const path = paths.requests(page);
      const { requests: rows, total } = await get(path);
      return { rows, total, lines: [["API call", curlLine(path)]] };
    },
  });
  const view = splitView({
    name: "requests",
    one: "Request",
    choose: "Choose a request to see why it was refused, and each check that it went through.",
    read: (id) => get(paths.request(id)),
    parts: (request) => requestParts(request, overview),
    redraw,
    list: (id) =>
      html`<section class="list" aria-label="Requests">
        <div class="bar">
          <h2>Requests</h2>
          ${requests.filterField("Outcome", "all outcomes", outcomeNames)} ${requests.pager()}
        </div>
        <ul class="rows">
          ${requests.rows.map((request) => row(request, request.id === id))}
        </ul>
        <div class="empty">${requests.total === 0 && emptyText(overview, requests.filter)}</div>
        ${requests.sameLines()}
      </section>`,
  });
  requests.reload();
  return {
    ...view,
    refresh() {
      requests.reload();
      view.reload();
    },
    change({ changed, kinds }) {
      requests.reload();
      if (changed.includes(view.id()) || kinds.includes("stores")) view.reload();
    },
  };
}

function emptyText({ counts, guards }, outcome) {
  if (Object.values(counts).some((count) => count > 0)) {
    const word = outcomes[outcome]?.[0];
    return html`<p>${word === undefined ? "No request is on this page." : `No request is "${word}".`}</p>`;
  }
  const url = "http://127.0.0.1:3000/api/v1/transaction";
  const payout = `countersign payout --url ${url} \\\n  --key test.private.pem --keyid test`;
  return html`<p>
      No request was seen yet. Each one that a check of countersign decides about in this process is listed
      here as it comes. Send one:
    </p>
    ${block("A payout", payout)} ${block("From a page", "countersign sandbox --port 4000")}
    ${guards.length > 0 && html`<p class="hint">Built in this process: ${guards.map(visible).join(", ")}.</p>`}`;
}

function row(request, isMarked) {
  const { id, at, method, target, outcome, status, guard, code, durationMs, guards } = request;
  const who = request.keyid ?? request.idempotencyKey ?? "";
  return linkedRow(
    { view: "requests", id, isMarked },
    html`<span class="what">${visible(`${method} ${target}`)}</span>
      ${outcomeBadge(outcome, status)}
      ${
        code !== undefined &&
        html`<span class="cause">${visible(code)}<small>${` ${visible(guard ?? "")}`}</small></span>`
      }
      <span class="meta">
        ${time(at)}
        <span>${plural(guards, "guard")}</span>
        <span>${durationMs !== undefined && duration(durationMs)}</span>
        <span class="where">${visible(who)}</span>
      </span>`,
  );
}
