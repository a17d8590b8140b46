// The verdicts of one request with what they know of it, and its life in the stores.

import { badge, copyButton, h, time, visible } from "./elements.js";
import { code, duration, facts, outcomeBadge } from "./parts.js";

/** One verdict; what was not let pass is opened. */
export function verdictPart(verdict) {
  const { id, guard, outcome, code: refusal, status } = verdict;
  return h(
    "li",
    {},
    h(
      "details",
      { class: "attempt", open: outcome !== "pass", "data-name": id },
      h(
        "summary",
        {},
        h("span", { class: "guard" }, visible(guard)),
        outcomeBadge(outcome, status),
        refusal !== undefined && h("span", {}, visible(refusal)),
        h("small", { class: "took" }, timesOf(verdict)),
      ),
      verdictFacts(verdict),
    ),
  );
}

function timesOf({ durationMs, storeMs }) {
  if (durationMs === undefined) return "";
  return storeMs === undefined
    ? duration(durationMs)
    : `store ${duration(storeMs)} of ${duration(durationMs)}`;
}

function verdictFacts({
  id,
  message,
  docs,
  label,
  keyid,
  subject,
  created,
  ageSeconds,
  components,
  idempotencyKey,
}) {
  return facts([
    ["Message", message === undefined ? undefined : visible(message)],
    ["Verdict", h("span", { class: "copied" }, code(id), copyButton(id, "verdict id"))],
    ["keyid", code(keyid)],
    ["Label", code(label)],
    ["Subject", code(subject)],
    ["Created", created === undefined ? undefined : createdPart(created, ageSeconds)],
    [
      "Covers",
      components &&
        h(
          "ul",
          { class: "inline" },
          components.map((name) => h("li", {}, code(name))),
        ),
    ],
    ["Idempotency", code(idempotencyKey)],
    [
      "Page",
      docs?.startsWith("https:")
        ? h("a", { href: docs, target: "_blank", rel: "noreferrer" }, "What the code means")
        : undefined,
    ],
  ]);
}

function createdPart(created, age) {
  const text = age === undefined ? "" : ageOf(age);
  const at = isTime(created) ? time(created * 1000) : String(created);
  return h("span", {}, at, " ", h("small", {}, text));
}

function ageOf(seconds) {
  const size = Math.abs(seconds);
  const shown = size < 10 ? size.toFixed(1) : Math.round(size).toLocaleString("en");
  return seconds < 0 ? `${shown} s ahead of the clock here` : `${shown} s before it was checked`;
}

const isTime = (seconds) => Math.abs(seconds) <= 8_640_000_000_000;

const tones = { error: "bad", timeout: "bad", held: "doubt", "not-owned": "doubt", abandoned: "bad" };

/** What happened to a request beside its verdicts, with the time since it came. */
export function lifeList(life, begun) {
  return h(
    "ol",
    { class: "life" },
    life.map(({ at, what, outcome, durationMs, text }) =>
      h(
        "li",
        {},
        h("small", { class: "offset" }, `+${Math.max(0, at - begun).toLocaleString("en")} ms`),
        h(
          "span",
          {},
          h("strong", {}, what),
          " ",
          visible(text),
          " ",
          outcome !== undefined && badge(visible(outcome), tones[outcome] ?? "calm"),
        ),
        h("small", {}, durationMs === undefined ? "" : duration(durationMs)),
      ),
    ),
  );
}
