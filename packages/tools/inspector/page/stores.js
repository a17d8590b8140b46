// The stores of the platform: first the payments that wait for somebody, then what runs and what is done.

import { curlLine, paths, resolveLine } from "./calls.js";
import { badge, h, throttled, visible } from "./elements.js";
import { keyedList } from "./keyed.js";
import { code, duration, apiCalls, shellLines, when } from "./parts.js";
import { get } from "./service.js";

const states = {
  held: { title: "Held: waiting for a decision", tone: "doubt", nothing: "No payment is held." },
  run: { title: "Running", tone: "calm", nothing: "Nothing runs." },
  done: { title: "Done", tone: "good", nothing: "Nothing is done yet." },
};

export function storesView({ stores }) {
  const element = h("div", { class: "column" });
  const shown = stores.map(storePart);
  element.append(...(shown.length === 0 ? [noStore()] : shown.map((each) => each.element)));
  const load = () => Promise.all(shown.map((each) => each.load()));
  const reload = throttled(300, () => void load().catch(() => {}));
  return {
    element,
    open: reload,
    refresh: reload,
    change({ kinds, requests }, isShown) {
      if (isShown && (kinds.includes("stores") || requests.length > 0)) reload();
    },
  };
}

function noStore() {
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "No store was named"),
    h("p", {}, "Name the stores of the platform, and their keys are listed here, held payments first:"),
    code("inspector({ stores: { payouts: store } })"),
  );
}

function storePart({ name, engine, lists }) {
  const inStates = lists ? Object.entries(states).map((entry) => stateList({ name, engine }, entry)) : [];
  const call = curlLine(paths.keys(name, "held"), location.origin);
  const element = h(
    "section",
    { class: "card" },
    h(
      "div",
      { class: "heading" },
      h("h2", {}, visible(name)),
      engine !== undefined && h("span", { class: "hint" }, visible(engine)),
    ),
    ...inStates.flatMap((list) => list.parts),
    h("p", { class: "hint" }, lists ? hintOf(engine) : hints.unlisted),
    lists && apiCalls([["API call", call]]),
  );
  return { element, load: () => Promise.all(inStates.map((list) => list.load())) };
}

const hints = {
  unlisted: "This store does not list its keys; a key that a request names is shown with the request.",
  memory:
    "This store is in the memory of the platform: no command reaches it, and a restart forgets its keys. store.resolve() decides.",
  others:
    "Ask the bank first, and not a log, whether money has moved. The command finds the store by STORE_URL or --store-url.",
};

const hintOf = (engine) => (engine === "memory" ? hints.memory : hints.others);

function stateList({ name, engine }, [state, { title, tone, nothing }]) {
  const items = h("ul", { class: "entries keys", "aria-label": `${title}, ${name}` });
  const count = h("small");
  const empty = h("p", { class: "hint" }, nothing);
  const rows = keyedList(items, (key) => keyEntry(key, { tone, engine }));
  return {
    parts: [h("h3", {}, `${title} `, count), items, empty],
    async load() {
      const { keys, isCut } = await get(paths.keys(name, state));
      rows.update(keys.map((key) => [`${isOpen(key)} ${key.fence} ${key.key}`, key]));
      count.textContent = isCut ? `the first ${keys.length}` : `${keys.length}`;
      empty.hidden = keys.length > 0;
    },
  };
}

/** Whether somebody has to decide: a run whose lease has ended waits as a held key does. */
function isOpen({ state, remainingMs }) {
  return state === "held" || (state === "run" && remainingMs !== undefined && remainingMs <= 0);
}

/** What changes while somebody reads is set in place, so that a button beside it keeps the focus. */
function keyEntry(key, { tone, engine }) {
  const facts = h("span", { class: "meta" });
  const sentence = h("p");
  const update = ({ since, reason, remainingMs, sentence: text }) => {
    facts.replaceChildren(
      ...[
        since !== undefined && h("span", {}, "since ", when(since)),
        reason !== undefined && h("span", {}, visible(reason)),
        remainingMs !== undefined &&
          h("span", {}, remainingMs > 0 ? `lease lasts ${duration(remainingMs)}` : "lease ended"),
      ].filter((part) => part !== false),
    );
    sentence.textContent = visible(text);
  };
  const element = h(
    "li",
    {},
    h("div", { class: "who" }, code(key.key), badge(key.state, tone), facts),
    isOpen(key) && sentence,
    isOpen(key) &&
      engine !== "memory" &&
      shellLines([
        ["Paid", resolveLine(key, "done"), `the payment was made, ${key.key}`],
        ["Not paid", resolveLine(key, "released"), `no payment was made, ${key.key}`],
      ]),
  );
  update(key);
  return { element, update };
}
