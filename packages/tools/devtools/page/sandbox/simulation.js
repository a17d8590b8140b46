// What happens at the service: buyers, sellers, payment requests, and any event.

import { calls } from "./calls.js";
import { EndpointForm } from "./endpoint.js";
import { problemText } from "./form.js";
import { badge, button, code, field, html, plainText } from "./kit.js";
import { pagedList } from "./list.js";
import { perform } from "./perform.js";
import { get } from "./service.js";

const told = ({ event_id: event }) =>
  event === undefined ? "done, and no event" : "done, and an event was sent";
const tones = {
  ACTIVE: "good",
  PENDING: "doubt",
  PENDING_REPAYMENT: "doubt",
  REJECTED: "bad",
  SUSPENDED: "bad",
};

export function simulationView(overview, redraw) {
  const lists = [
    listCard(redraw, partyList("buyer", overview)),
    listCard(redraw, partyList("seller", overview)),
    listCard(redraw, paymentRequestList()),
  ];
  let problem;
  const say = (text) => {
    problem = text;
    redraw();
  };
  return {
    open() {},
    refresh() {
      for (const list of lists) list.reload();
      redraw();
    },
    change({ kinds }) {
      for (const list of lists) if (kinds.includes(list.kind)) list.reload();
    },
    draw: () =>
      html`<div class="cards">
        <div class="column">${lists.map((list) => list.draw())}</div>
        <div class="column">${eventCard(overview, problem, say)}${endpointCard(overview)}</div>
      </div>`,
  };
}

/** A card with a form, and a list of ten, which is read anew when something has changed. */
function listCard(redraw, { kind, heading, path = `/sandbox/${kind}`, form, empty, rowsOf, rowFor }) {
  const pageSize = 10;
  const list = pagedList({
    redraw,
    pageSize,
    async read({ offset }) {
      const { total, ...lists } = await get(`${path}?limit=${pageSize}&offset=${offset}`);
      return { rows: rowsOf(lists), total };
    },
  });
  list.reload();
  const draw = () =>
    html`<section class="card" aria-label=${heading}>
      <div class="bar">
        <h2>${heading}</h2>
        ${list.pager()}
      </div>
      ${form}
      <ul class="entries">
        ${list.rows.map(rowFor)}
      </ul>
      <p class="empty">${list.total === 0 && empty}</p>
    </section>`;
  return { kind, reload: list.reload, draw };
}

/** A form of one line, whose fields `send` gets by their names. */
function lineForm(press, send, ...fields) {
  const submit = (event) => {
    event.preventDefault();
    void send(Object.fromEntries(new FormData(event.target)));
  };
  return html`<form class="line" onsubmit=${submit}>
    ${fields}
    <button type="submit" class="primary">${press}</button>
  </form>`;
}

function idField(label, placeholder) {
  const input = html`<input name="id" required maxlength="256" placeholder=${placeholder} ...${plainText} />`;
  return field(label, input);
}

function partyList(kind, { statuses }) {
  const change = (id, to) => perform(calls.status(kind, id, to), told);
  const options = statuses.map(
    (name) => html`<option value=${name} selected=${name === "ACTIVE"}>${name}</option>`,
  );
  const name = kind === "buyer" ? "Buyer" : "Seller";
  return {
    kind: `${kind}s`,
    heading: `${name}s`,
    form: lineForm(
      "Change",
      ({ id, status }) => change(id, status),
      idField(name, `${kind}-1`),
      field(
        "Status",
        html`<select name="status">
          ${options}
        </select>`,
      ),
    ),
    empty: `No ${kind} yet. The first change creates one, as PENDING before.`,
    rowsOf: (lists) => lists[`${kind}s`],
    rowFor(party) {
      const id = party[`${kind}_id`];
      const others = statuses.filter((to) => to !== party.status);
      return html`<li key=${id}>
        <span class="who">${code(id)}${badge(party.status, tones[party.status] ?? "calm")}</span>
        <span class="buttons">
          ${others.map((to) => button(to, () => change(id, to), { "aria-label": `${id}: ${to}` }))}
        </span>
      </li>`;
    },
  };
}

function paymentRequestList() {
  const inAWeek = new Date(Date.now() + 7 * 86_400_000).toISOString().slice(0, 10);
  const due = html`<input name="due" type="date" required defaultValue=${inAWeek} />`;
  return {
    kind: "payment-requests",
    heading: "Payment requests",
    form: lineForm(
      "Create",
      (given) => perform(calls.paymentRequest(given.id, given.due), () => "created"),
      idField("Payment request", "request-1"),
      field("Due date", due),
    ),
    empty: "No payment request yet.",
    rowsOf: (lists) => lists.payment_requests,
    rowFor({ payment_request_id: id, status, due_date: dueDate }) {
      const act = (action, text) =>
        button(text, () => perform(calls.repayment(id, action), told), { "aria-label": `${id}: ${text}` });
      return html`<li key=${id}>
        <span class="who">
          ${code(id)}${badge(status, tones[status] ?? "calm")}<small>due ${dueDate}</small>
        </span>
        ${
          status !== "CLOSED" &&
          html`<span class="buttons">${act("repay", "Repay")}${act("remind", "Remind")}</span>`
        }
      </li>`;
    },
  };
}

function eventCard({ events }, problem, say) {
  const types = Object.keys(events);
  const sample = (type) => JSON.stringify(events[type], undefined, 2);
  const submit = (event) => {
    event.preventDefault();
    const { type, data } = event.target.elements;
    try {
      const call = calls.event(type.value, JSON.parse(data.value));
      say();
      void perform(call, () => "an event was sent", undefined, say);
    } catch {
      say("JSON is expected.");
    }
  };
  const fill = ({ target }) => {
    if (Object.hasOwn(events, target.value)) target.form.elements.data.value = sample(target.value);
  };
  const type = html`<input
    name="type"
    required
    list="event-types"
    defaultValue=${types[0]}
    onchange=${fill}
    ...${plainText}
  />`;
  const data = html`<textarea name="data" rows="5" spellcheck=${false} defaultValue=${sample(types[0])} />`;
  return html`<section class="card" aria-label="Any event">
    <h2>Any event</h2>
    <form onsubmit=${submit}>
      ${field("Type", type, "as in the interface, or one that a receiver does not know")}
      <datalist id="event-types">${types.map((name) => html`<option value=${name} />`)}</datalist>
      ${field("Data", data, problemText(problem))}
      <button type="submit" class="primary">Send event</button>
    </form>
  </section>`;
}

function endpointCard({ endpoints }) {
  return html`<section class="card" aria-label="Endpoints">
    <h2>Webhook endpoints</h2>
    ${
      endpoints.length === 0
        ? html`<p class="empty">None is registered yet.</p>`
        : html`<ul class="entries">
            ${endpoints.map(({ url }) => html`<li>${code(url)}</li>`)}
          </ul>`
    }
    <p class="hint">Every endpoint gets every event.</p>
    <details open=${endpoints.length === 0}>
      <summary>Register an endpoint</summary>
      <${EndpointForm} />
    </details>
  </section>`;
}
