// The requests: a page of the list, which follows what happens, and one of them in full beside it.

import { curlLine, paths } from "./calls.js";
import { badge, block, duration, html, plural, time, visible } from "./kit.js";
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
    choose: "Choose a request to see what each check has found, and why it was refused.",
    read: (id) => get(paths.request(id)),
    parts: (request) => requestParts(request, overview),
    redraw,
    list: (id) =>
      html`<section class="list" aria-label="Requests">
        <div class="bar">
          <h2>Requests</h2>
          ${requests.filterField("Outcome", "all outcomes", outcomeNames)} ${requests.pager()}
          ${requests.searchField("Search", "key, event, code or path")}
        </div>
        <ul class="rows">
          ${requests.rows.map((request) => row(request, id))}
        </ul>
        <div class="empty">${requests.total === 0 && emptyText(overview, requests)}</div>
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

function emptyText({ counts, guards }, { filter, search }) {
  if (Object.values(counts).some((count) => count > 0)) {
    const word = outcomes[filter]?.[0];
    const kind = word === undefined ? "No request" : `No request that is "${word}"`;
    return html`<p>${search === "" ? `${kind} is here.` : `${kind} has "${visible(search)}" in it.`}</p>`;
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

/** The newest attempt, with those before it to be opened. */
function row(request, shown) {
  const { id, oldestId, at, method, target, outcome, status, guard, code, durationMs, guards } = request;
  const { attempts, attemptCount, events, threw } = request;
  const [event] = events;
  const who =
    event === undefined ? (request.idempotencyKey ?? request.keyid ?? "") : eventText(event, events);
  const isOpen = attempts.some((attempt) => attempt.id === shown);
  return linkedRow(
    {
      view: "requests",
      id,
      isMarked: id === shown,
      key: oldestId,
      below: attemptCount > 1 && attemptList(request, shown, isOpen),
    },
    html`<span class="what">${visible(`${method} ${target}`)}</span>
      ${outcomeBadge(outcome, status)}
      ${
        (code !== undefined || threw) &&
        html`<span class="cause"
          >${code === undefined ? badge("exception", "bad") : visible(code)}<small
            >${` ${visible(guard ?? "")}`}</small
          ></span
        >`
      }
      <span class="meta">
        ${time(at)}
        <span>${plural(guards, "guard")}</span>
        <span>${durationMs !== undefined && duration(durationMs)}</span>
        <span class="where" title=${visible(who)}>${visible(who)}</span>
      </span>`,
  );
}

function eventText({ type, eventId }, { length }) {
  return length === 1 ? `${type} ${eventId}` : `${type} ${eventId}, ${length - 1} more`;
}

/** What came under the same key, or is the same webhook again. */
function attemptList({ attempts, attemptCount }, shown, isOpen) {
  const left = attemptCount - attempts.length;
  return html`<details class="attempts" open=${isOpen || undefined}>
    <summary>${attemptCount} attempts</summary>
    <ul>
      ${attempts.map(
        ({ id, at, outcome, status, code }) =>
          html`<li key=${id}>
            <a href="#/requests/${id}" aria-current=${id === shown ? "true" : undefined}>
              <span class="number">#${id}</span>
              <span class="meta">${time(at)}<span class="where">${visible(code ?? "")}</span></span>
              ${outcomeBadge(outcome, status)}
            </a>
          </li>`,
      )}
      ${left > 0 && html`<li class="hint">and ${plural(left, "older one")}</li>`}
    </ul>
  </details>`;
}
