// A call of the service's API: made for somebody, and shown as what it is.

import { commandLine, curlLine } from "./calls.js";
import { badge, html, openedLines, show, visible } from "./kit.js";
import { ask, Refusal } from "./service.js";

/** What one call is as a request, and as a command where there is one: names with their lines. */
export function linesOf(call) {
  const { origin } = location;
  const api = ["API call", curlLine(call, origin)];
  return call.words === undefined ? [api] : [["Command", commandLine(call, origin)], api];
}

/** Makes a call for somebody, and shows it, with what came of it, at the foot of the page. Undefined where it was refused. */
export async function perform(call, told = () => "done", tone = () => "good") {
  try {
    const answer = await ask(call);
    showCall(call, told(answer), tone(answer));
    return answer;
  } catch (error) {
    const message = error instanceof Refusal ? error.message : "the sandbox does not answer";
    showCall(call, message, "bad");
    return undefined;
  }
}

const dock = document.querySelector("#dock");
// On a telephone it would cover what it is about.
let isOpen = matchMedia("(min-width: 801px)").matches;

function showCall(call, outcome, tone) {
  dock.hidden = false;
  const members = { open: isOpen, ontoggle: ({ target }) => (isOpen = target.open) };
  show(
    dock,
    html`<p role="status"><strong>${visible(call.title)}</strong>${" "}${badge(visible(outcome), tone)}</p>
      ${openedLines(linesOf(call), members)}`,
  );
}
