// Parts of the document that several views have. Text is only ever set as text.

import { badge, copyButton, h, time, visible } from "./elements.js";

const outcomes = {
  pass: ["passed", "good"],
  reject: ["refused", "bad"],
  error: ["error", "doubt"],
};

/** The words for the outcomes, for a choice. */
export const outcomeNames = Object.entries(outcomes).map(([outcome, [word]]) => [outcome, word]);

/** What was decided, and the status where there is one: an app may refuse what every check has let pass. */
export function outcomeBadge(outcome, status) {
  const [word, tone] = outcomes[outcome];
  if (isRefusedByApp(outcome, status)) return badge(`${word} ${status}`, "doubt");
  return badge(status === undefined ? word : `${word} ${status}`, tone);
}

export function isRefusedByApp(outcome, status) {
  return outcome === "pass" && status >= 400;
}

/** How bad an outcome is, as a class. */
export const toneOf = (outcome) => outcomes[outcome][1];

/** A duration in milliseconds as a person reads it. */
export function duration(ms) {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(0)} s`;
  return ms >= 100 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(ms < 1 ? 2 : 1)} ms`;
}

/** How long ago, in the largest unit that fits. */
function ago(ms) {
  const seconds = Math.max(0, Math.round((Date.now() - ms) / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 172_800
    ? `${Math.round(seconds / 3600)} h ago`
    : `${Math.round(seconds / 86_400)} days ago`;
}

/** A time, and how long ago it is, which {@link tellTime} keeps right. */
export function when(ms) {
  return h("span", {}, time(ms), " ", h("small", { "data-since": ms }, ago(ms)));
}

/** How long ago what is shown was. */
export function tellTime() {
  for (const shown of document.querySelectorAll("[data-since]"))
    shown.textContent = ago(Number(shown.dataset.since));
}

/** Text of a request; undefined where there is none. */
export function code(text) {
  return text === undefined ? undefined : h("code", {}, visible(text));
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Names with their values; those that are undefined are left out. */
export function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** Lines for a shell with their names, ready to be copied. */
export function shellLines(pairs) {
  return h(
    "dl",
    { class: "lines" },
    pairs.map(([name, text, about = name]) =>
      h(
        "div",
        {},
        h("dt", {}, name),
        h("dd", {}, h("code", { tabindex: "0" }, visible(text)), copyButton(text, about)),
      ),
    ),
  );
}

/** Requests of the API as lines of a shell, to be opened. */
export function apiCalls(pairs) {
  return h(
    "details",
    {},
    h("summary", {}, pairs.length > 1 ? "As API calls" : "As an API call"),
    shellLines(pairs),
  );
}

/** A table that a telephone shows as a list. `caption` is its name; rows are put into `body`. */
export function table(caption, columns) {
  const body = h("tbody", { role: "rowgroup" });
  const head = h(
    "thead",
    { role: "rowgroup" },
    h(
      "tr",
      { role: "row" },
      columns.map((name) => h("th", { role: "columnheader", scope: "col" }, name)),
    ),
  );
  const element = h("table", { role: "table", "aria-label": caption }, head, body);
  /** A row whose cells are parts in the order of the columns. */
  const cells = (parts) =>
    parts.map((part, index) => h("td", { role: "cell", "data-label": columns[index] }, part));
  return { element, body, cells };
}
