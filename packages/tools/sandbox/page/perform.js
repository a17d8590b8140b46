// A call of the service's API: made for somebody, and shown as what it is.

import { commandLine, curlLine } from "./calls.js";
import { badge, copyButton, h, visible } from "./elements.js";
import { ask, Refusal } from "./service.js";

/** What one call is as a request, and as a command where there is one, ready to be copied. */
export function callLines(call) {
  const lines = [
    ...(call.words === undefined ? [] : [["Command", commandLine(call, location.origin)]]),
    ["API call", curlLine(call, location.origin)],
  ];
  return h(
    "dl",
    { class: "lines" },
    lines.map(([name, text]) =>
      h(
        "div",
        {},
        h("dt", {}, name),
        h("dd", {}, h("code", { tabindex: "0" }, visible(text)), copyButton(text, name)),
      ),
    ),
  );
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
  const words = h(
    "p",
    { role: "status" },
    h("strong", {}, visible(call.title)),
    " ",
    badge(visible(outcome), tone),
  );
  dock.replaceChildren(
    words,
    callDetails(call, { open: isOpen, ontoggle: ({ target }) => (isOpen = target.open) }),
  );
}

/** {@link callLines}, to be opened. */
export function callDetails(call, members = {}) {
  const summary = call.words === undefined ? "As an API call" : "As a command and as an API call";
  return h("details", members, h("summary", {}, summary), callLines(call));
}
