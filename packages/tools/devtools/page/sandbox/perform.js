// A call of the service's API: made for somebody, and shown as what it is.

import { commandLine, curlLine } from "./calls.js";
import { badge, html, openedLines, show, visible } from "./kit.js";
import { deliveriesOf } from "./search.js";
import { ask, Refusal } from "./service.js";

/** What one call is as a request, and as a command where there is one: names with their lines. */
export function linesOf(call) {
  const { origin } = location;
  const api = ["API call", curlLine(call, origin)];
  return call.words === undefined ? [api] : [["Command", commandLine(call, origin)], api];
}

/**
 * Makes a call for somebody, and shows it, with what came of it, at the foot of the page. Undefined where it was not done; `refused` gets the
 * service's words about what was sent.
 */
export async function perform(call, told = () => "done", tone = () => "good", refused = () => {}) {
  const shown = call.shown ?? call;
  try {
    const answer = await ask(call);
    showCall(shown, told(answer), tone(answer), answer.event_id ?? answer.event_ids?.[0]);
    return answer;
  } catch (error) {
    const isRefusal = error instanceof Refusal;
    showCall(shown, isRefusal ? error.message : "the sandbox does not answer", "bad");
    if (isRefusal) refused(error.message);
    return undefined;
  }
}

const dock = document.querySelector("#dock");
// Opened, it would cover what it is about.
let isOpen = false;

function showCall(call, outcome, tone, event) {
  dock.hidden = false;
  const members = { open: isOpen, ontoggle: ({ target }) => (isOpen = target.open) };
  show(
    dock,
    html`<p role="status">
        <strong>${visible(call.title)}</strong>${" "}${badge(visible(outcome), tone)}
        ${event !== undefined && html`<a href=${deliveriesOf(event)}>its deliveries</a>`}
      </p>
      ${openedLines(linesOf(call), members)}`,
  );
}
