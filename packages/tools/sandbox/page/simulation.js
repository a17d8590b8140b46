// What happens at the service: buyers, sellers, payment requests, and any event.

import { calls } from "./calls.js";
import { registration } from "./deliveries.js";
import { badge, button, field, h, pager, throttled, visible } from "./elements.js";
import { perform } from "./perform.js";
import { get } from "./service.js";

const pageSize = 10;
const told = ({ event_id: event }) =>
  event === undefined ? "done, and no event" : "done, and an event was sent";
const tones = {
  ACTIVE: "good",
  PENDING: "doubt",
  PENDING_REPAYMENT: "doubt",
  REJECTED: "bad",
  SUSPENDED: "bad",
};

export function simulationView(overview) {
  const parts = [
    partyCard("buyer", overview),
    partyCard("seller", overview),
    paymentRequestCard(),
    eventCard(overview),
    endpointCard(overview),
  ];
  return {
    element: h(
      "div",
      { class: "cards" },
      [parts.slice(0, 3), parts.slice(3)].map((column) =>
        h(
          "div",
          { class: "column" },
          column.map(({ element }) => element),
        ),
      ),
    ),
    open() {},
    refresh() {
      for (const part of parts) part.reload();
    },
    change({ kinds }) {
      for (const part of parts) if (kinds.includes(part.kind)) part.reload();
    },
  };
}

/** A card with a list of ten, which is read anew when something has changed. */
function listCard({ kind, heading, intro, empty, path, rowsOf, rowFor }) {
  let offset = 0;
  const items = h("ul", { class: "entries" });
  const none = h("p", { class: "empty" });
  const load = async () => {
    const { total, ...lists } = await get(`${path}?limit=${pageSize}&offset=${offset}`);
    const rows = rowsOf(lists);
    pages.update({ first: offset, shown: rows.length, total });
    none.textContent = total === 0 ? empty : "";
    const focused = [...items.querySelectorAll("button")].indexOf(document.activeElement);
    items.replaceChildren(...rows.map(rowFor));
    // What was pressed stays where the keyboard is.
    if (focused !== -1) items.querySelectorAll("button")[focused]?.focus();
  };
  const turn = (to) => {
    offset = Math.max(0, to);
    void load();
  };
  const pages = pager({ onNewer: () => turn(offset - pageSize), onOlder: () => turn(offset + pageSize) });
  const reload = throttled(100, () => void load().catch(() => {}));
  reload();
  const bar = h("div", { class: "bar" }, h("h2", {}, heading), pages.element);
  return {
    kind,
    reload,
    element: h("section", { class: "card", "aria-label": heading }, bar, intro, items, none),
  };
}

function partyCard(kind, { statuses }) {
  const id = h("input", {
    name: `${kind}-id`,
    required: true,
    maxlength: "256",
    placeholder: `${kind}-1`,
    spellcheck: "false",
    autocomplete: "off",
  });
  const status = h(
    "select",
    {},
    statuses.map((name) => h("option", { value: name, selected: name === "ACTIVE" }, name)),
  );
  const change = (named, to) => perform(calls.status(kind, named, to), told);
  const submit = (event) => {
    event.preventDefault();
    void change(id.value, status.value);
  };
  const intro = h(
    "form",
    { class: "line", onsubmit: submit },
    field(kind === "buyer" ? "Buyer" : "Seller", id),
    field("Status", status),
    h("button", { type: "submit", class: "primary" }, "Change"),
  );
  return listCard({
    kind: `${kind}s`,
    heading: kind === "buyer" ? "Buyers" : "Sellers",
    intro,
    empty: `No ${kind} yet. The first change creates one, as PENDING before.`,
    path: `/sandbox/${kind}s`,
    rowsOf: (lists) => lists[`${kind}s`],
    rowFor: (party) => {
      const named = party[`${kind}_id`];
      return h(
        "li",
        {},
        h(
          "span",
          { class: "who" },
          h("code", {}, visible(named)),
          badge(party.status, tones[party.status] ?? "calm"),
        ),
        h(
          "span",
          { class: "buttons" },
          statuses.map((to) =>
            to === party.status
              ? undefined
              : button(to, () => change(named, to), { "aria-label": `${named}: ${to}` }),
          ),
        ),
      );
    },
  });
}

function paymentRequestCard() {
  const id = h("input", {
    name: "request-id",
    required: true,
    maxlength: "256",
    placeholder: "request-1",
    spellcheck: "false",
    autocomplete: "off",
  });
  const due = h("input", {
    name: "due-date",
    type: "date",
    required: true,
    value: new Date(Date.now() + 7 * 86_400_000).toISOString().slice(0, 10),
  });
  const submit = (event) => {
    event.preventDefault();
    void perform(calls.paymentRequest(id.value, due.value), () => "created");
  };
  const intro = h(
    "form",
    { class: "line", onsubmit: submit },
    field("Payment request", id),
    field("Due date", due),
    h("button", { type: "submit", class: "primary" }, "Create"),
  );
  return listCard({
    kind: "payment-requests",
    heading: "Payment requests",
    intro,
    empty: "No payment request yet.",
    path: "/sandbox/payment-requests",
    rowsOf: (lists) => lists.payment_requests,
    rowFor: ({ payment_request_id: named, status, due_date: dueDate }) => {
      const act = (action, text) =>
        button(text, () => perform(calls.repayment(named, action), told), {
          "aria-label": `${named}: ${text}`,
        });
      return h(
        "li",
        {},
        h(
          "span",
          { class: "who" },
          h("code", {}, visible(named)),
          badge(status, tones[status] ?? "calm"),
          h("small", {}, `due ${dueDate}`),
        ),
        status === "CLOSED"
          ? undefined
          : h("span", { class: "buttons" }, act("repay", "Repay"), act("remind", "Remind")),
      );
    },
  });
}

function eventCard({ events }) {
  const types = Object.keys(events);
  const type = h("input", {
    name: "type",
    required: true,
    list: "event-types",
    value: types[0],
    spellcheck: "false",
    autocomplete: "off",
  });
  const data = h("textarea", {
    name: "data",
    rows: "5",
    spellcheck: "false",
    value: JSON.stringify(events[types[0]], undefined, 2),
  });
  const problem = h("p", { class: "problem", role: "alert" });
  type.addEventListener("change", () => {
    if (Object.hasOwn(events, type.value)) data.value = JSON.stringify(events[type.value], undefined, 2);
  });
  const submit = (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      void perform(calls.event(type.value, JSON.parse(data.value)), () => "an event was sent");
    } catch {
      problem.textContent = "Data: JSON is expected.";
    }
  };
  const element = h(
    "section",
    { class: "card", "aria-label": "Any event" },
    h("h2", {}, "Any event"),
    h(
      "form",
      { onsubmit: submit },
      field("Type", type, "as in the interface, or one that a receiver does not know"),
      h(
        "datalist",
        { id: "event-types" },
        types.map((name) => h("option", { value: name })),
      ),
      field("Data", data),
      problem,
      h("button", { type: "submit", class: "primary" }, "Send event"),
    ),
  );
  return { element, reload() {} };
}

function endpointCard(overview) {
  const content = h("div");
  const reload = () => {
    const rows = overview.endpoints.map(({ url }) => h("li", {}, h("code", {}, visible(url))));
    content.replaceChildren(
      rows.length === 0
        ? h("p", { class: "empty" }, "None is registered yet.")
        : h("ul", { class: "entries" }, rows),
      h(
        "p",
        { class: "hint" },
        "Every endpoint gets every event. Credentials are given on the command line, and never shown here.",
      ),
      ...registration(),
    );
  };
  reload();
  return {
    element: h(
      "section",
      { class: "card", "aria-label": "Endpoints" },
      h("h2", {}, "Webhook endpoints"),
      content,
    ),
    reload,
  };
}
