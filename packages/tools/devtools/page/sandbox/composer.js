// The payout composer with every variant, and a payout that was sent as an order for another one.

import { calls } from "./calls.js";
import { checkedField, problemAt } from "./form.js";
import { block, Component, html, openedLines } from "./kit.js";
import { linesOf, perform } from "./perform.js";
import { payoutVerdict } from "./verdicts.js";

const sampleAmount = '{"value":"10.00","currency":"EUR"}';
const fieldNames = [
  ["idempotency_key", "Idempotency key", "a fresh one"],
  ["amount", "Amount (JSON)", sampleAmount],
  ["business_id", "Business", "businessId"],
  ["iban", "IBAN", "iban"],
  ["bic", "BIC", "bic"],
  ["name", "Name", "name"],
  ["reference", "Reference", "Funding payout, sample"],
];
const checked = ["count", ...fieldNames.map(([name]) => name)];

/** What a form of the composer says; the amount as it was typed: parsed and written again, 10.10 would be 10.1. */
function orderOf(form, about) {
  const { url, variant, count, ...given } = Object.fromEntries(new FormData(form));
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ""));
  return { url, info: infoOf(about, variant), count: Number(count), fields, about };
}

const infoOf = (about, variant) => about.variants.find((info) => info.variant === variant);

/** The order of a payout that was sent, in the same way or in another. */
export function orderAgain({ url, count = 3, fields, ...sent }, about, variant = sent.variant) {
  const { idempotencyKey, businessId, referenceField, ...others } = fields;
  const wire = {
    ...others,
    idempotency_key: idempotencyKey,
    business_id: businessId,
    reference_field: referenceField,
  };
  const given = Object.fromEntries(Object.entries(wire).filter(([, value]) => value !== undefined));
  return { url, info: infoOf(about, variant), count, fields: given, about };
}

/** The same with all of its fields to be changed, and a fresh key: with the old one it would be the payout that was sent. */
export function editedOrder(sent, about) {
  const order = orderAgain(sent, about);
  const samples = fieldNames.slice(1).map(([name, , sample]) => [name, about.sample[sample] ?? sample]);
  const { idempotency_key: _old, ...given } = order.fields;
  return { ...order, fields: { ...Object.fromEntries(samples), ...given } };
}

/** A flag of the command, small beside what it does. */
export function flagText({ flag, value, takesCount }) {
  if (flag === undefined) return "";
  return `--${flag}${value === undefined ? "" : ` ${value}`}${takesCount ? " n" : ""}`;
}

export async function sendPayout(order, refused) {
  const sent = await perform(
    calls.payout(order),
    (payout) => `${payout.steps.map(answerOf).join(", ")}: ${payoutVerdict(payout).text}`,
    (payout) => payoutVerdict(payout).tone,
    refused,
  );
  if (sent !== undefined) location.hash = `#/payouts/${sent.number}`;
}

const answerOf = ({ answer, error }) => String(answer?.status ?? error?.code);

/** `start` is what it begins with, see {@link editedOrder}. */
export class Composer extends Component {
  componentDidMount() {
    if (this.props.start === undefined) return;
    // After the page has given the focus of what is gone to its successor.
    queueMicrotask(() => this.form.elements.amount.focus());
  }

  async send(event) {
    event.preventDefault();
    this.setState({ problems: {} });
    const refused = (message) => this.setState({ problems: problemAt(message, checked, "url") });
    await sendPayout(orderOf(event.target, this.props.about), refused);
  }

  render({ about, start }, { order = start ?? plainOrder(about), problems = {} }) {
    const input = (label, name, members) => checkedField(label, name, problems[name], members);
    const { url, count, info, fields } = start ?? plainOrder(about);
    const number = { type: "number", min: "2", max: "100", defaultValue: String(count) };
    return html`<form
      class="card composer"
      aria-label="Send a payout"
      ref=${(form) => (this.form = form)}
      oninput=${({ currentTarget }) => this.setState({ order: orderOf(currentTarget, about) })}
      onsubmit=${(event) => void this.send(event)}
    >
      <h2>Send a payout</h2>
      ${input("Payout endpoint", "url", { defaultValue: url })}
      <fieldset>
        <legend>What is sent</legend>
        ${about.variants.map((each) => variantChoice(each, each === info))}
      </fieldset>
      <div hidden=${order.info.takesCount !== true}>${input("Requests at once", "count", number)}</div>
      <details open=${start !== undefined || fieldNames.some(([name]) => problems[name] !== undefined)}>
        <summary>Fields of the instruction</summary>
        <div class="grid">
          ${fieldNames.map(([name, label, sample]) =>
            input(label, name, {
              placeholder: about.sample[sample] ?? sample,
              defaultValue: textOf(fields[name]),
            }),
          )}
        </div>
      </details>
      <details>
        <summary>Key ${about.keyid}</summary>
        <p class="hint">
          The platform needs this public key under this keyid. The private key stays with the service.
        </p>
        ${block("Public key", about.publicKeyPem)}
      </details>
      ${openedLines(linesOf(calls.payout(order)))}
      <div class="send"><button type="submit" class="primary">Send</button></div>
    </form>`;
  }
}

const plainOrder = (about) => ({ url: about.url, info: about.variants[0], count: 3, fields: {}, about });

// The amount of a call of the API can be an object.
function textOf(value = "") {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function variantChoice(info, isChosen) {
  const { variant, sends, expected } = info;
  return html`<label class="choice">
    <input type="radio" name="variant" value=${variant} defaultChecked=${isChosen} />
    <span class="sends">${sends}</span>${" "} <small class="flag">${flagText(info)}</small>${" "}
    <small>expects ${expected.join(", ")}</small>
  </label>`;
}
