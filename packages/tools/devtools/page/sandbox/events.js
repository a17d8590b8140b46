// The events of a delivery, to be changed and sent as new ones.

import { calls } from "./calls.js";
import { problemText } from "./form.js";
import { Component, field, html } from "./kit.js";
import { perform } from "./perform.js";

/** Types and data, as JSON; undefined of a body that is not shown in full. */
function editable(body) {
  try {
    const { events } = JSON.parse(body);
    return JSON.stringify(
      events.map(({ type, data }) => ({ type, data })),
      undefined,
      2,
    );
  } catch {
    return undefined;
  }
}

export class EditedEvents extends Component {
  async send(event) {
    event.preventDefault();
    const problem = (text) => this.setState({ problem: text });
    problem(undefined);
    let events;
    try {
      events = JSON.parse(event.target.elements.events.value);
    } catch {
      problem("JSON is expected.");
      return;
    }
    await perform(calls.events(events), () => "sent as new events", undefined, problem);
  }

  render({ body }, { problem }) {
    const text = editable(body);
    if (text === undefined) return undefined;
    const input = html`<textarea
      name="events"
      rows="10"
      spellcheck=${false}
      aria-invalid=${problem === undefined ? undefined : "true"}
      defaultValue=${text}
    />`;
    return html`<details class="edit">
      <summary>Edit and send</summary>
      <form onsubmit=${(event) => void this.send(event)}>
        ${field("Events (JSON)", input, problemText(problem))}
        <button type="submit" class="primary">Send as new events</button>
      </form>
    </details>`;
  }
}
