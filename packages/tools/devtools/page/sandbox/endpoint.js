// The form that registers a webhook endpoint, and the command that does the same.

import { calls, curlLine } from "./calls.js";
import { checkedField, problemAt } from "./form.js";
import { block, Component, html } from "./kit.js";
import { perform } from "./perform.js";
import { pageToken } from "./service.js";

const secret = { type: "password", autocomplete: "new-password" };
const fields = [
  ["url", "URL", { placeholder: "http://127.0.0.1:3000/hooks/…" }],
  ["username", "User"],
  ["password", "Password", secret],
  ["secret", "Secret of the signature", secret],
];
const names = fields.map(([name]) => name);
const given = (form) => Object.fromEntries(new FormData(form));

/** The values go from here to the service, and none comes back. */
export class EndpointForm extends Component {
  async send(event) {
    event.preventDefault();
    const form = event.target;
    this.setState({ problems: {} });
    const refused = (message) => this.setState({ problems: problemAt(message, names, "url") });
    const made = await perform(calls.endpoint(given(form)), () => "registered", undefined, refused);
    if (made === undefined) return;
    form.reset();
    this.setState({ values: {} });
  }

  render(_props, { values = {}, problems = {} }) {
    const { origin } = location;
    const call = calls.endpoint(filled(values));
    return html`<form
      aria-label="Register an endpoint"
      oninput=${({ currentTarget }) => this.setState({ values: given(currentTarget) })}
      onsubmit=${(event) => void this.send(event)}
    >
      <div class="grid">
        ${fields.map(([name, label, members]) => checkedField(label, name, problems[name], members))}
      </div>
      <button type="submit" class="primary">Register</button>
      ${block("The same as a command", line(call, origin, pageToken()), {
        shown: line(call.shown, origin, "[masked]"),
      })}
      <p class="hint">
        The copy has what is masked: your password and secret, and the key of this page, which is good until
        the sandbox ends. With the sandbox's API key, <code>countersign endpoint create</code> does the same.
      </p>
    </form>`;
  }
}

function line(call, origin, token) {
  return curlLine(call, origin, [`X-Page-Token: ${token}`, `Origin: ${origin}`]);
}

/** What is not typed in yet stands there as its name. */
function filled(values) {
  return Object.fromEntries(names.map((name) => [name, values[name] || name.toUpperCase()]));
}
