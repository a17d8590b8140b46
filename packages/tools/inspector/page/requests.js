// The requests: a page of the list, which follows what happens, and one of them in full beside it.

import { curlLine, paths } from "./calls.js";
import { block, field, h, pager, throttled, time, visible } from "./elements.js";
import { keyedList } from "./keyed.js";
import { duration, apiCalls, outcomeBadge, outcomeNames, plural } from "./parts.js";
import { requestDetail } from "./request.js";
import { get } from "./service.js";

const pageSize = 50;

export function requestsView(overview) {
  const list = requestList(overview);
  const detail = requestDetail(overview);
  const element = h("div", { class: "split requests" }, list.element, detail.element);
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
    change({ requests, kinds }) {
      list.change(requests);
      if (requests.some(({ id }) => id === detail.id()) || kinds.includes("stores")) detail.reload();
    },
  };
}

function requestList(overview) {
  let known = new Map();
  let befores = [undefined];
  let outcome = "";
  let total = 0;
  let marked;
  let asked = 0;
  const items = h("ul", { class: "rows" });
  const rows = keyedList(items, row);
  const empty = h("div", { class: "empty" });
  const same = h("div", { class: "same" });
  const turn = (next) => {
    befores = next;
    void reload().catch(() => {});
  };
  const pages = pager({
    onNewer: () => turn(befores.slice(0, -1)),
    onOlder: () => turn([...befores, [...known.keys()].at(-1)]),
  });
  const filter = h(
    "select",
    { onchange: ({ target }) => ((outcome = target.value), turn([undefined])) },
    h("option", { value: "" }, "all outcomes"),
    outcomeNames.map(([value, word]) => h("option", { value }, word)),
  );
  const element = h(
    "section",
    { class: "list", "aria-label": "Requests" },
    h("div", { class: "bar" }, h("h2", {}, "Requests"), field("Outcome", filter), pages.element),
    items,
    empty,
    same,
  );

  /** Newest first, and no more than a page of them. */
  function show(requests) {
    const ordered = requests.toSorted((one, other) => other.id - one.id).slice(0, pageSize);
    known = new Map(ordered.map((request) => [request.id, request]));
    rows.update(known);
    mark(marked);
    pages.update({
      first: (befores.length - 1) * pageSize,
      shown: known.size,
      total: Math.max(total, known.size),
    });
    empty.replaceChildren(...(known.size === 0 ? emptyText(overview, outcome) : []));
  }
  async function reload() {
    asked += 1;
    const own = asked;
    const path = paths.requests({ outcome, before: befores.at(-1) });
    const answer = await get(path);
    // Another page was asked for meanwhile.
    if (own !== asked) return;
    total = answer.total;
    show(answer.requests);
    const isOpen = same.querySelector("details")?.open === true;
    if (same.dataset.path === path) return;
    same.dataset.path = path;
    same.replaceChildren(apiCalls([["API call", curlLine(path, location.origin)]]));
    same.querySelector("details").open = isOpen;
  }
  function mark(id) {
    marked = id;
    for (const [number, { link }] of rows.entries()) {
      if (number === id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  const later = throttled(300, () => void reload().catch(() => {}));
  return {
    element,
    mark,
    reload: later,
    change(requests) {
      const isFirst = befores.length === 1;
      const fitting = requests.filter(
        (request) => known.has(request.id) || (isFirst && (outcome === "" || outcome === request.outcome)),
      );
      if (fitting.length > 0) {
        const merged = new Map([...known, ...fitting.map((request) => [request.id, request])]);
        show([...merged.values()]);
      }
      // How many there are, and what the stream did not tell in full.
      later();
    },
  };
}

function emptyText({ counts, guards }, outcome) {
  if (Object.values(counts).some((count) => count > 0)) {
    const word = outcomeNames.find(([value]) => value === outcome)?.[1];
    return [h("p", {}, word === undefined ? "No request is on this page." : `No request is "${word}".`)];
  }
  const url = "http://127.0.0.1:3000/api/v1/transaction";
  return [
    h(
      "p",
      {},
      "No request was seen yet. Each one that a check of countersign decides about in this process is listed here as it comes. Send one:",
    ),
    block("A payout", `countersign payout --url ${url} \\\n  --key test.private.pem --keyid test`),
    block("From a page", "countersign sandbox --port 4000"),
    guards.length > 0 &&
      h("p", { class: "hint" }, `Built in this process: ${guards.map(visible).join(", ")}.`),
  ].filter((part) => part !== false);
}

function row(request) {
  const link = h("a", { href: `#/requests/${request.id}` });
  const element = h("li", {}, link);
  let shown;
  const update = (now) => {
    const text = JSON.stringify(now);
    if (text === shown) return;
    shown = text;
    const { id, at, method, target, outcome, status, guard, code, durationMs, guards } = now;
    link.replaceChildren(
      h("span", { class: "number" }, `#${id}`),
      h("span", { class: "what" }, visible(`${method} ${target}`)),
      outcomeBadge(outcome, status),
      ...(code === undefined
        ? []
        : [h("span", { class: "cause" }, visible(code), h("small", {}, ` ${visible(guard ?? "")}`))]),
      h(
        "span",
        { class: "meta" },
        time(at),
        h("span", {}, plural(guards, "guard")),
        h("span", {}, durationMs === undefined ? "" : duration(durationMs)),
        h("span", { class: "where" }, visible(whoOf(now))),
      ),
    );
  };
  update(request);
  return { element, link, update };
}

function whoOf({ keyid, idempotencyKey }) {
  return keyid ?? idempotencyKey ?? "";
}
