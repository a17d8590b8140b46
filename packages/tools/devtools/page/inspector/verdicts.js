// The verdicts of one request with what they know of it, and its life in the stores.

import { badge, code, CopyButton, duration, facts, html, prose, time, visible } from "./kit.js";

/** By outcome its word, and how bad it is. */
export const outcomes = {
  pass: ["passed", "good"],
  reject: ["refused", "bad"],
  error: ["error", "doubt"],
};

/** What was decided, and the status where there is one: an app may refuse what every check has let pass, or fail. */
export function outcomeBadge(outcome, status) {
  const [word, tone] = isFailed(outcome, status) ? ["failed", "bad"] : outcomes[outcome];
  const text = status === undefined ? word : `${word} ${status}`;
  return badge(text, tone === "good" && isRefusedByApp(outcome, status) ? "doubt" : tone);
}

function isFailed(outcome, status) {
  return outcome === "pass" && status >= 500;
}

export function isRefusedByApp(outcome, status) {
  return outcome === "pass" && status >= 400;
}

/** One verdict; what was not let pass is opened. */
export function verdictPart(verdict) {
  const { id, guard, outcome, code: refusal, status } = verdict;
  return html`<li key=${id}>
    <details class="attempt" open=${outcome !== "pass"}>
      <summary>
        <span class="guard">${visible(guard)}</span>${outcomeBadge(outcome, status)}
        ${refusal !== undefined && html`<span>${visible(refusal)}</span>`}
        <small class="took">${timesOf(verdict)}</small>
      </summary>
      ${verdictFacts(verdict)}
    </details>
  </li>`;
}

function timesOf({ durationMs, storeMs }) {
  if (durationMs === undefined) return "";
  return storeMs === undefined
    ? duration(durationMs)
    : `store ${duration(storeMs)} of ${duration(durationMs)}`;
}

function verdictFacts(verdict) {
  const { id, message, meaning, label, keyid, subject, created, ageSeconds, components, idempotencyKey } =
    verdict;
  return facts([
    ["Message", message && visible(message)],
    ["Cause", meaning && prose(meaning.cause)],
    ["Remedy", meaning && prose(meaning.remedy)],
    ["Verdict", html`<span class="copied">${code(id)}<${CopyButton} text=${id} name="verdict id" /></span>`],
    ["keyid", code(keyid)],
    ["Label", code(label)],
    ["Subject", code(subject)],
    ["Created", created === undefined ? undefined : createdPart(created, ageSeconds)],
    [
      "Covers",
      components &&
        html`<ul class="inline">
          ${components.map((name) => html`<li>${code(name)}</li>`)}
        </ul>`,
    ],
    ["Idempotency", code(idempotencyKey)],
  ]);
}

function createdPart(created, age) {
  const text = age === undefined ? "" : ageOf(age);
  const at = isTime(created) ? time(created * 1000) : String(created);
  return html`<span>${at}${" "}<small>${text}</small></span>`;
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
  const entry = ({ at, what, outcome, durationMs, text, meaning }) =>
    html`<li>
      <small class="offset">+${Math.max(0, at - begun).toLocaleString("en")} ms</small>
      <span>
        <strong>${what}</strong>${` ${visible(text)} `}
        ${outcome !== undefined && badge(visible(outcome), tones[outcome] ?? "calm")}
        ${meaning && html`<small class="meaning">${prose(`${meaning.cause} ${meaning.remedy}`)}</small>`}
      </span>
      <small>${durationMs !== undefined && duration(durationMs)}</small>
    </li>`;
  return html`<ol class="life">
    ${life.map(entry)}
  </ol>`;
}
