// The deliveries: a page of the list, which follows what happens, and one of them in full.

import { calls } from "./calls.js";
import {
  badge,
  block,
  button,
  field,
  h,
  headerLines,
  pager,
  setDisabled,
  throttled,
  time,
  typeName,
  visible,
} from "./elements.js";
import { callDetails, callLines, perform } from "./perform.js";
import { ask } from "./service.js";

const pageSize = 50;
const tones = { delivered: "good", failed: "bad", pending: "doubt" };

export function deliveriesView(overview) {
  const list = deliveryList(overview);
  const detail = deliveryDetail(overview);
  const element = h("div", { class: "split" }, list.element, detail.element);
  return {
    element,
    open([id]) {
      const number = id === undefined ? undefined : Number(id);
      element.classList.toggle("opened", number !== undefined);
      list.mark(number);
      detail.open(number);
    },
    refresh() {
      list.reload();
      detail.reload();
    },
    change(change) {
      list.change(change);
      if (change.changed.includes(detail.id())) detail.reload();
    },
  };
}

function deliveryList(overview) {
  const rows = new Map();
  let befores = [undefined];
  let state = "";
  let marked;
  const items = h("ul", { class: "rows" });
  const empty = h("div", { class: "empty" });
  const same = h("div", { class: "same" });
  const turn = async (next) => {
    befores = next;
    await reload();
  };
  const pages = pager({
    onNewer: () => void turn(befores.slice(0, -1)),
    onOlder: () => void turn([...befores, [...rows.keys()].at(-1)]),
  });
  const filter = h(
    "select",
    { onchange: ({ target }) => ((state = target.value), void turn([undefined])) },
    h("option", { value: "" }, "all states"),
    Object.keys(tones).map((name) => h("option", { value: name }, name)),
  );
  const element = h(
    "section",
    { class: "list", "aria-label": "Deliveries" },
    h("div", { class: "bar" }, h("h2", {}, "Deliveries"), field("State", filter), pages.element),
    items,
    empty,
    same,
  );

  const total = () => {
    const { counts } = overview;
    return state === "" ? Object.values(counts).reduce((sum, count) => sum + count, 0) : counts[state];
  };
  const place = () => {
    pages.update({
      first: (befores.length - 1) * pageSize,
      shown: rows.size,
      total: Math.max(total(), rows.size),
    });
    empty.replaceChildren(...(rows.size === 0 ? emptyText(overview, state) : []));
  };
  async function reload() {
    const call = calls.deliveries({ state, before: befores.at(-1) });
    const { deliveries } = await ask(call);
    const isOpen = same.querySelector("details")?.open === true;
    same.replaceChildren(callDetails(call, { open: isOpen }));
    rows.clear();
    for (const delivery of deliveries.toReversed()) rows.set(delivery.id, row(delivery));
    items.replaceChildren(...[...rows.values()].map(({ element: item }) => item));
    mark(marked);
    place();
  }
  function mark(id) {
    marked = id;
    for (const [number, { link }] of rows) {
      if (number === id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  const later = throttled(300, () => void reload().catch(() => {}));
  return {
    element,
    mark,
    reload: later,
    change({ deliveries, changed }) {
      const told = new Set(deliveries.map(({ id }) => id));
      for (const delivery of deliveries) {
        if (rows.has(delivery.id)) rows.get(delivery.id).update(delivery);
        else if (befores.length === 1 && (state === "" || state === delivery.state)) add(delivery);
      }
      // Older than what the stream tells in full.
      if (changed.some((id) => rows.has(id) && !told.has(id))) later();
      place();
    },
  };

  /** Newest first, and no more than a page of them. */
  function add(delivery) {
    const added = row(delivery);
    const following = [...rows.entries()].find(([id]) => id < delivery.id);
    items.insertBefore(added.element, following?.[1].element ?? null);
    rows.set(delivery.id, added);
    const ordered = [...rows.entries()].toSorted(([one], [other]) => other - one);
    rows.clear();
    for (const [index, [id, entry]] of ordered.entries()) {
      if (index < pageSize) rows.set(id, entry);
      else entry.element.remove();
    }
  }
}

function emptyText({ endpoints, counts }, state) {
  const some = Object.values(counts).some((count) => count > 0);
  if (some) return [h("p", {}, `No delivery is ${state} on this page.`)];
  if (endpoints.length > 0) {
    const events = h("a", { href: "#/simulate" }, "change a buyer or send an event");
    return [h("p", {}, "Nothing was sent yet: ", events, "."), endpointList(endpoints)];
  }
  return [
    h("p", {}, "No webhook endpoint is registered, so there is nobody to tell. Register yours:"),
    ...registration(),
  ];
}

/** How an endpoint is registered: with credentials that this page never sees. */
export function registration() {
  const credentials = ["USERNAME", "PASSWORD", "SECRET"].map((name) => `WEBHOOK_${name}=… \\\n`).join("");
  const line = `${credentials}countersign endpoint create \\\n  --base-url ${location.origin} \\\n  --url http://127.0.0.1:3000/…`;
  return [block("Command", line)];
}

function endpointList(endpoints) {
  return h(
    "ul",
    {},
    endpoints.map(({ url }) => h("li", {}, h("code", {}, visible(url)))),
  );
}

function row(delivery) {
  const link = h("a", { href: `#/deliveries/${delivery.id}` });
  const element = h("li", {}, link);
  const update = (now) => {
    const { id, state, stopped, attempts, createdAt, eventTypes, nextAttemptAt, url } = now;
    const [type = "no event", ...others] = eventTypes;
    const next = nextAttemptAt === undefined ? [] : [h("span", {}, "next ", time(nextAttemptAt))];
    link.replaceChildren(
      h("span", { class: "number" }, `#${id}`),
      h(
        "span",
        { class: "what" },
        typeName(type),
        others.length > 0 && h("small", {}, ` and ${others.length} more`),
      ),
      badge(stopped ?? state, stopped === "paused" ? "calm" : tones[state]),
      h(
        "span",
        { class: "meta" },
        h("span", { class: "where" }, visible(placeOf(url))),
        time(createdAt),
        h("span", {}, `${attempts.length} ${attempts.length === 1 ? "try" : "tries"}`),
        h("span", {}, lastAnswer(attempts)),
        ...next,
      ),
    );
  };
  update(delivery);
  return { element, link, update };
}

function placeOf(url) {
  return url.replace(/^https?:\/\//, "");
}

function lastAnswer(attempts) {
  const { status, error } = attempts.findLast(({ spoilt }) => spoilt === undefined) ?? {};
  return String(status ?? error ?? "not sent yet");
}

function deliveryDetail(overview) {
  let id;
  let current;
  const element = h("section", { class: "detail", "aria-label": "One delivery", tabindex: "-1" });
  const content = h("div", { class: "parts" });
  const act = async (call, told, tone) => {
    const answer = await perform(call, told, tone);
    if (answer !== undefined) await load();
  };
  const again = button("Send again, signed anew", () => act(calls.resend(id), () => "sent"), {
    class: "primary",
  });
  const part = h(
    "select",
    { "aria-label": "What is spoilt" },
    overview.spoilt.map((name) => h("option", { value: name }, name)),
  );
  const spoil = button("Spoil", () =>
    act(
      calls.spoil(id, part.value),
      (answer) => spoiltAnswer(answer).text,
      (answer) => spoiltAnswer(answer).tone,
    ),
  );
  const pause = button("Pause", () => act(calls.control(id, isPaused() ? "continue" : "pause")));
  const drop = button("Drop", () => act(calls.control(id, "drop")));
  const isPaused = () => current?.delivery.stopped === "paused";
  const heading = h("h2");
  const frame = [
    h("a", { class: "back", href: "#/deliveries" }, "All deliveries"),
    heading,
    h("div", { class: "actions" }, again, h("span", { class: "joined" }, part, spoil), pause, drop),
    content,
  ];

  async function load() {
    const wanted = id;
    if (wanted === undefined) return;
    const found = await ask({ method: "GET", path: `/sandbox/deliveries/${wanted}` }).catch(() => undefined);
    if (wanted !== id) return;
    if (found === undefined) {
      element.replaceChildren(h("p", { class: "empty" }, `There is no delivery #${wanted}.`));
      return;
    }
    const isNew = current?.delivery.id !== wanted;
    current = found;
    const { state } = found.delivery;
    heading.textContent = `Delivery #${wanted}`;
    pause.textContent = isPaused() ? "Continue" : "Pause";
    for (const one of [pause, drop]) setDisabled(one, state !== "pending");
    const open = isNew ? undefined : openBlocks(content);
    content.replaceChildren(...detailParts(found));
    if (open !== undefined) restoreBlocks(content, open);
    if (!frame[0].isConnected) element.replaceChildren(...frame);
    if (isNew) element.focus({ preventScroll: true });
  }
  const reload = throttled(200, () => void load());
  return {
    element,
    id: () => id,
    reload,
    open(number) {
      if (number === id && number !== undefined) return;
      id = number;
      current = undefined;
      if (id === undefined)
        element.replaceChildren(
          h("p", { class: "empty" }, "Choose a delivery to see its bytes, its signature and its answers."),
        );
      else void load();
    },
  };
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

function openBlocks(place) {
  return new Map([...place.querySelectorAll("details")].map((element) => [nameOf(element), element.open]));
}

function restoreBlocks(place, open) {
  for (const element of place.querySelectorAll("details"))
    element.open = open.get(nameOf(element)) ?? element.open;
}

// Within an attempt, its blocks are called as those of the others.
function nameOf(element) {
  const attempt = element.parentElement.closest("details")?.querySelector("summary").textContent ?? "";
  return attempt + element.querySelector("summary").textContent;
}

function detailParts({ delivery, request, schedule, attempts }) {
  const { webhookId, url, state, stopped, eventTypes, eventIds, createdAt } = delivery;
  const facts = [
    ["State", badge(stopped ?? state, stopped === "paused" ? "calm" : tones[state])],
    [
      "Events",
      h(
        "ul",
        {},
        eventTypes
          .slice(0, 10)
          .map((type, index) => h("li", {}, typeName(type), " ", h("small", {}, visible(eventIds[index])))),
        eventTypes.length > 10 && h("li", {}, `and ${eventTypes.length - 10} more`),
      ),
    ],
    ["Endpoint", h("code", {}, visible(url))],
    ["webhook_id", h("code", {}, webhookId)],
    ["Formed", time(createdAt)],
  ];
  return [
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
    h("h3", {}, attempts.length === 0 ? "No attempt yet" : "Attempts"),
    ...attempts.map((attempt, index) => attemptPart(attempt, index, toneOf(attempt, attempts))),
    h("h3", {}, "Schedule"),
    scheduleList(delivery, schedule),
    h("h3", {}, "Request"),
    block("Line and header fields", `${request.method} ${request.target}\n${headerLines(request.headers)}`),
    block(`Body, and signature base: ${request.bodyBytes.toLocaleString("en")} bytes`, request.body),
    h(
      "p",
      { class: "hint" },
      "X-Payload-Signature is the base64 of the HMAC-SHA-256 of these bytes with the endpoint's signature_secret.",
    ),
    h("h3", {}, "The same from elsewhere"),
    callLines(calls.delivery(delivery)),
  ];
}

function scheduleList({ nextAttemptAt, state, stopped }, { givesUpAt, later }) {
  const steps = [];
  if (stopped === "paused") steps.push("paused: nothing is sent until it is continued");
  if (stopped === "dropped") steps.push("dropped by hand");
  if (nextAttemptAt !== undefined) steps.push(h("span", {}, "next attempt ", time(nextAttemptAt)));
  for (const at of later) steps.push(h("span", {}, "after a failure, at the latest ", time(at)));
  if (state === "pending") steps.push(h("span", {}, "given up after ", time(givesUpAt)));
  if (steps.length === 0) steps.push("nothing is left to send");
  return h(
    "ol",
    { class: "steps" },
    steps.map((step) => h("li", {}, step)),
  );
}

function attemptPart(
  { at, status, error, durationMs, spoilt, requestHeaders, answerHeaders, answerBody },
  index,
  tone,
) {
  return h(
    "details",
    { class: "attempt" },
    h(
      "summary",
      {},
      h("span", {}, `${index + 1}. `, time(at)),
      badge(String(status ?? error), tone),
      spoilt !== undefined && badge(`${spoilt} spoilt`, "calm"),
      h("small", {}, `${durationMs.toFixed(0)} ms`),
    ),
    requestHeaders === undefined &&
      h("p", { class: "hint" }, "What went over the wire is kept of the newest attempts alone."),
    requestHeaders !== undefined && block("Header fields that were sent", headerLines(requestHeaders)),
    answerHeaders !== undefined && block("Header fields of the answer", headerLines(answerHeaders)),
    answerBody !== undefined && answerBody !== "" && block("Body of the answer", answerBody),
  );
}
