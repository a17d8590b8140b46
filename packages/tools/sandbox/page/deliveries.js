// The deliveries: a page of the list, which follows what happens, and one of them in full.

import { calls } from "./calls.js";
import { badge, block, button, code, facts, headerLines, html, plural } from "./kit.js";
import { shellLines, time, typeName, visible } from "./kit.js";
import { linkedRow, pagedList, splitView } from "./list.js";
import { linesOf, perform } from "./perform.js";
import { ask, get } from "./service.js";

const tones = { delivered: "good", failed: "bad", pending: "doubt" };

export function deliveriesView(overview, redraw) {
  const total = (state) =>
    state === ""
      ? Object.values(overview.counts).reduce((sum, count) => sum + count, 0)
      : overview.counts[state];
  const deliveries = pagedList({
    redraw,
    pageSize: 50,
    async read({ filter: state, before }) {
      const call = calls.deliveries({ state, before });
      const answer = await ask(call);
      return { rows: answer.deliveries.toReversed(), total: total(state), lines: linesOf(call) };
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
    list: (id) =>
      html`<section class="list" aria-label="Deliveries">
        <div class="bar">
          <h2>Deliveries</h2>
          ${deliveries.filterField("State", "all states", states)} ${deliveries.pager()}
        </div>
        <ul class="rows">
          ${deliveries.rows.map((delivery) => row(delivery, delivery.id === id))}
        </ul>
        <div class="empty">${deliveries.total === 0 && emptyText(overview, deliveries.filter)}</div>
        ${deliveries.sameLines()}
      </section>`,
  });
  deliveries.reload();
  return {
    ...view,
    refresh() {
      deliveries.reload();
      view.reload();
    },
    change({ changed }) {
      deliveries.reload();
      if (changed.includes(view.id())) view.reload();
    },
  };
}

function emptyText({ endpoints, counts }, state) {
  const some = Object.values(counts).some((count) => count > 0);
  if (some) return html`<p>No delivery is ${state} on this page.</p>`;
  if (endpoints.length > 0)
    return html`<p>Nothing was sent yet: <a href="#/simulate">change a buyer or send an event</a>.</p>
      <ul>
        ${endpoints.map(({ url }) => html`<li>${code(url)}</li>`)}
      </ul>`;
  return html`<p>No webhook endpoint is registered, so there is nobody to tell. Register yours:</p>
    ${registration()}`;
}

/** How an endpoint is registered: with credentials that this page never sees. */
export function registration() {
  const credentials = ["USERNAME", "PASSWORD", "SECRET"].map((name) => `WEBHOOK_${name}=… \\\n`).join("");
  const line = `${credentials}countersign endpoint create \\\n  --base-url ${location.origin} \\\n  --url http://127.0.0.1:3000/…`;
  return block("Command", line);
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

// What the interface has a platform answer to a webhook that it does not believe.
const isRefusal = (status) => status === 401 || status === 404;
const isTaken = (status) => status >= 200 && status <= 299;

function spoiltAnswer({ attempts }) {
  const attempt = attempts.findLast(({ spoilt }) => spoilt !== undefined) ?? {};
  const { status, error } = attempt;
  const tone = toneOf(attempt, attempts);
  const told = { good: "refused, as it should be", doubt: "refused, as everything was so far" };
  const wrong = isTaken(status) ? "taken although it was spoilt" : "401 or 404 is expected";
  return { text: `${status ?? error}: ${told[tone] ?? wrong}`, tone };
}

// A wrong path refuses everything: of a spoilt attempt that says nothing until one as it should be was taken.
function toneOf({ status, spoilt }, attempts) {
  if (spoilt === undefined) return isTaken(status) ? "good" : "bad";
  if (!isRefusal(status)) return "bad";
  return attempts.some((one) => one.spoilt === undefined && isTaken(one.status)) ? "good" : "doubt";
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
    ${button("Send again, signed anew", () => act(calls.resend(id), () => "sent"), { class: "primary" })}
    <form class="joined" onsubmit=${spoil}>
      <select name="part" aria-label="What is spoilt">
        ${spoilt.map((name) => html`<option value=${name}>${name}</option>`)}
      </select>
      <button type="submit">Spoil</button>
    </form>
    ${button(word, () => act(calls.control(id, pause)), { isDisabled })}
    ${button("Drop", () => act(calls.control(id, "drop")), { isDisabled })}
  </div>`;
}

function deliveryParts({ delivery, request, schedule, attempts }, overview, reload) {
  const { id, webhookId, url, eventTypes, eventIds, createdAt } = delivery;
  const events = eventTypes
    .slice(0, 10)
    .map((type, index) => html`<li>${typeName(type)}${" "}<small>${visible(eventIds[index])}</small></li>`);
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
    ${attempts.map((attempt, index) => attemptPart(attempt, index, toneOf(attempt, attempts)))}
    <h3>Schedule</h3>
    ${scheduleList(delivery, schedule)}
    <h3>Request</h3>
    ${block("Line and header fields", `${request.method} ${request.target}\n${headerLines(request.headers)}`)}
    ${block(`Body, and signature base: ${request.bodyBytes.toLocaleString("en")} bytes`, request.body)}
    <p class="hint">
      X-Payload-Signature is the base64 of the HMAC-SHA-256 of these bytes with the endpoint's
      signature_secret.
    </p>
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

function attemptPart(attempt, index, tone) {
  const { at, status, error, durationMs, spoilt, requestHeaders, answerHeaders, answerBody } = attempt;
  return html`<details class="attempt">
    <summary>
      <span>${`${index + 1}. `}${time(at)}</span>${badge(String(status ?? error), tone)}
      ${spoilt !== undefined && badge(`${spoilt} spoilt`, "calm")}
      <small>${durationMs.toFixed(0)} ms</small>
    </summary>
    ${
      requestHeaders === undefined
        ? html`<p class="hint">What went over the wire is kept of the newest attempts alone.</p>`
        : block("Header fields that were sent", headerLines(requestHeaders))
    }
    ${answerHeaders && block("Header fields of the answer", headerLines(answerHeaders))}
    ${answerBody && block("Body of the answer", answerBody)}
  </details>`;
}
