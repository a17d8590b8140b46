// What the platform's own code threw while it handled a request.

import { block, html, time, visible } from "./kit.js";

/** Each exception with its stack, before how the guards came to their verdicts. */
export function errorParts(errors) {
  if (errors.length === 0) return undefined;
  return html`<h3>${errors.length === 1 ? "Exception" : "Exceptions"}</h3>
    ${errors.map(errorPart)}`;
}

function errorPart({ at, from, chain }) {
  const [first, ...causes] = chain;
  return html`<div class="told bad thrown">
    <p>${visible(titleOf(first))}</p>
    ${causes.map((cause) => html`<p>Caused by ${visible(titleOf(cause))}</p>`)}
    <small>${visible(from)} · ${time(at)}</small>
    ${block("Stack", chain.map(stackOf).join("\ncaused by "))}
  </div>`;
}

function titleOf({ name, code, message }) {
  const head = code === undefined ? name : `${name} ${code}`;
  return message === "" ? head : `${head}: ${message}`;
}

function stackOf(error) {
  const { stack } = error;
  return stack === "" ? titleOf(error) : `${titleOf(error)}\n    ${stack}`;
}
