// The deliveries: a page of the list, which follows what happens, and one of them in full.

import { bodyBlock } from "./body.js";
import { calls } from "./calls.js";
import { EndpointForm } from "./endpoint.js";
import { EditedEvents } from "./events.js";
import { badge, block, button, code, facts, headerLines, html, plural } from "./kit.js";
import { shellLines, time, typeName, visible } from "./kit.js";
import { linkedRow, splitView } from "./list.js";
import { linesOf, perform } from "./perform.js";
import { deliveriesOf, searchedList } from "./search.js";
import { ask, get } from "./service.js";
import { attemptVerdict } from "./verdicts.js";

const tones = { delivered: "good", failed: "bad", pending: "doubt" };

export function deliveriesView(overview, redraw) {
  const searched = searchedList({
    redraw,
    pageSize: 50,
    async read({ filter: state, before, search }) {
      const call = calls.deliveries({ state, before, search });
      const { deliveries, counts } = await ask(call);
      const total = state === "" ? sumOf(counts) : counts[state];
      return { rows: deliveries.toReversed(), total, lines: linesOf(call) };
    },
  });
  const states = Object.keys(tones).map((state) => [state, state]);
  const view = splitView({
    name: "deliveries",
    one: "Delivery",
    choose: "Choose a delivery to see its bytes, its signature and its answers.",
    read: (id) => get(`/sandbox/deliveries/${id}`),
    parts: (found) => deliveryParts(found, overview, () => view.load()),
    redraw,
    list(id) {
      const deliveries = searched.list();
      return html`<section class="list" aria-label="Deliveries">
        <div class="bar">
          <h2>Deliveries</h2>
          ${deliveries.filterField("State", "all states", states)}
          ${searched.searchField("Key, event id, type, status")} ${deliveries.pager()}
        </div>
        <ul class="rows">
          ${deliveries.rows.map((delivery) => row(delivery, delivery.id === id))}
        </ul>
        <div class="empty">${deliveries.total === 0 && emptyText(overview)}</div>
        ${deliveries.sameLines()}
      </section>`;
    },
  });
  return {
    ...view,
    open([part, text]) {
      if (part !== "search") {
        view.open([part].filter((given) => given !== undefined));
        return;
      }
      searched.search(text ?? "");
      view.open([]);
    },
    refresh() {
      searched.list().reload();
      view.reload();
    },
    change({ changed }) {
      searched.list().reload();
      if (changed.includes(view.id())) view.reload();
    },
  };
}

const sumOf = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

function emptyText({ endpoints, counts }) {
  if (sumOf(counts) > 0) return html`<p>No delivery is found.</p>`;
  if (endpoints.length > 0)
    return html`<p>Nothing was sent yet: <a href="#/simulate">change a buyer or send an event</a>.</p>
      <ul>
        ${endpoints.map(({ url }) => html`<li>${code(url)}</li>`)}
      </ul>`;
  return html`<p>No webhook endpoint is registered, so there is nobody to tell. Register yours:</p>
    <${EndpointForm} />`;
}

function stateBadge({ state, stopped }) {
  return badge(stopped ?? state, stopped === "paused" ? "calm" : tones[state]);
}

function row(delivery, isMarked) {
  const { id, attempts, createdAt, eventTypes, nextAttemptAt, url } = delivery;
  const [type = "no event", ...others] = eventTypes;
  return linkedRow(
    { view: "deliveries", id, isMarked },
    html`<span class="what">
        ${typeName(type)}${others.length > 0 && html`<small>${` and ${others.length} more`}</small>`}
      </span>
      ${stateBadge(delivery)}
      <span class="meta">
        <span class="where">${visible(url.replace(/^https?:\/\//, ""))}</span>
        ${time(createdAt)}
        <span>${plural(attempts.length, "try", "tries")}</span>
        <span>${lastAnswer(attempts)}</span>
        ${nextAttemptAt !== undefined && html`<span>next ${time(nextAttemptAt)}</span>`}
      </span>`,
  );
}

function lastAnswer(attempts) {
  const { status, error } = attempts.findLast(({ spoilt }) => spoilt === undefined) ?? {};
  return String(status ?? error ?? "not sent yet");
}

function deliveryActions({ id, state, stopped }, { spoilt }, reload) {
  const act = async (call, told, tone) => {
    if ((await perform(call, told, tone)) !== undefined) await reload();
  };
  const spoil = (event) => {
    event.preventDefault();
    void act(
      calls.spoil(id, event.target.elements.part.value),
      (answer) => spoiltAnswer(answer).text,
      (answer) => spoiltAnswer(answer).tone,
    );
  };
  const isDisabled = state !== "pending";
  const [word, pause] = stopped === "paused" ? ["Continue", "continue"] : ["Pause", "pause"];
  return html`<div class="actions">
    ${button("Send the same again", () => act(calls.resend(id), () => "sent"), { class: "primary" })}
    <form class="joined" onsubmit=${spoil}>
      <select name="part" aria-label="What is spoilt">
        ${Object.entries(spoilt).map(([part, text]) => html`<option value=${part}>${text}</option>`)}
      </select>
      <button type="submit">Send spoilt</button>
    </form>
    ${button(word, () => act(calls.control(id, pause)), { isDisabled })}
    ${button("Drop", () => act(calls.control(id, "drop")), { isDisabled })}
  </div>`;
}

function deliveryParts({ delivery, request, schedule, attempts }, overview, reload) {
  const { id, webhookId, url, eventTypes, eventIds, createdAt } = delivery;
  const events = eventTypes.slice(0, 10).map((type, index) => {
    const eventId = eventIds[index];
    return html`<li>
      ${typeName(type)}${" "}
      <a href=${deliveriesOf(eventId)} aria-label="All deliveries of event ${eventId}"
        ><small>${visible(eventId)}</small></a
      >
    </li>`;
  });
  return html`<h2>Delivery #${id}</h2>
    ${deliveryActions(delivery, overview, reload)}
    ${facts([
      ["State", stateBadge(delivery)],
      [
        "Events",
        html`<ul>
          ${events} ${eventTypes.length > 10 && html`<li>and ${eventTypes.length - 10} more</li>`}
        </ul>`,
      ],
      ["Endpoint", code(url)],
      ["webhook_id", code(webhookId)],
      ["Formed", time(createdAt)],
    ])}
    <h3>${attempts.length === 0 ? "No attempt yet" : "Attempts"}</h3>
    ${attempts.map((attempt, index) => attemptPart(attempt, index, { attempts, overview }))}
    <h3>Schedule</h3>
    ${scheduleList(delivery, schedule)}
    <h3>Request</h3>
    ${block("Line and header fields", `${request.method} ${request.target}\n${headerLines(request.headers)}`)}
    ${bodyBlock(`Body, and signature base: ${request.bodyBytes.toLocaleString("en")} bytes`, request.body)}
    <p class="hint">
      X-Payload-Signature is the base64 of the HMAC-SHA-256 of these bytes with the endpoint's
      signature_secret.
    </p>
    <${EditedEvents} key=${id} body=${request.body} />
    <h3>The same from elsewhere</h3>
    ${shellLines(linesOf(calls.delivery(delivery)))}`;
}

function scheduleList({ nextAttemptAt, state, stopped }, { givesUpAt, later }) {
  const steps = [];
  if (stopped === "paused") steps.push("paused: nothing is sent until it is continued");
  if (stopped === "dropped") steps.push("dropped by hand");
  if (nextAttemptAt !== undefined) steps.push(html`next attempt ${time(nextAttemptAt)}`);
  for (const at of later) steps.push(html`after a failure, at the latest ${time(at)}`);
  if (state === "pending") steps.push(html`given up after ${time(givesUpAt)}`);
  if (steps.length === 0) steps.push("nothing is left to send");
  return html`<ol class="steps">
    ${steps.map((step) => html`<li>${step}</li>`)}
  </ol>`;
}

function spoiltAnswer({ attempts }) {
  const index = attempts.findLastIndex(({ spoilt }) => spoilt !== undefined);
  const { status, error } = attempts[index];
  const { text, tone } = attemptVerdict(attempts[index], index, attempts);
  return { text: `${status ?? error}: ${text}`, tone };
}

function attemptPart(attempt, index, { attempts, overview }) {
  const { text, tone } = attemptVerdict(attempt, index, attempts);
  const { at, status, error, durationMs, spoilt, requestHeaders, answerHeaders, answerBody } = attempt;
  return html`<details class="attempt">
    <summary>
      <span>${`${index + 1}. `}${time(at)}</span>${badge(String(status ?? error), tone)}
      ${spoilt !== undefined && html`<span>${overview.spoilt[spoilt]}${" "}<small class="flag">${spoilt}</small></span>`}
      <small>${durationMs.toFixed(0)} ms</small>
      <small class="told">${text}</small>
    </summary>
    ${
      requestHeaders === undefined
        ? html`<p class="hint">What went over the wire is kept of the newest attempts alone.</p>`
        : block("Header fields that were sent", headerLines(requestHeaders))
    }
    ${answerHeaders && block("Header fields of the answer", headerLines(answerHeaders))}
    ${answerBody && bodyBlock("Body of the answer", answerBody)}
  </details>`;
}
