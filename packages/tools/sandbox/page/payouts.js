// The payout composer with every variant, and the payouts that were sent from here.

import { calls } from "./calls.js";
import { badge, block, button, code, Component, facts, field, headerLines, html } from "./kit.js";
import { openedLines, plainText, shellLines, time, visible } from "./kit.js";
import { linkedRow, pagedList, splitView } from "./list.js";
import { linesOf, perform } from "./perform.js";
import { get } from "./service.js";

export function payoutsView({ payouts: about }, redraw) {
  const pageSize = 20;
  const payouts = pagedList({
    redraw,
    pageSize,
    async read({ offset }) {
      const answer = await get(`/sandbox/payouts?limit=${pageSize}&offset=${offset}`);
      return { rows: answer.payouts, total: answer.total };
    },
  });
  payouts.reload();
  const view = splitView({
    name: "payouts",
    one: "Payout",
    choose: "A payout that was sent shows its bytes, its signature base and the answer here.",
    read: (number) => get(`/sandbox/payouts/${number}`),
    parts: (sent) => payoutParts(sent, about),
    redraw,
    list: (number) =>
      html`<div class="list">
        <${Composer} about=${about} />
        <section aria-label="Payouts">
          <div class="bar">
            <h2>Sent from here</h2>
            ${payouts.pager()}
          </div>
          <ul class="rows">
            ${payouts.rows.map((payout) => row(payout, payout.number === number))}
          </ul>
          <p class="empty">${payouts.total === 0 && "No payout was sent from here yet."}</p>
        </section>
      </div>`,
  });
  return {
    ...view,
    refresh: payouts.reload,
    change({ kinds }) {
      if (kinds.includes("payouts")) payouts.reload();
    },
  };
}

function row({ number: id, variant, at, answers, url, ...verdict }, isMarked) {
  return linkedRow(
    { view: "payouts", id, isMarked },
    html`<span class="what">${variant}</span>
      ${badge(answers.slice(0, 4).join(", "), verdictOf(verdict).tone)}
      <span class="meta">
        <span class="where">${visible(url.replace(/^https?:\/\//, ""))}</span>${time(at)}
      </span>`,
  );
}

const fieldNames = [
  ["idempotency_key", "Idempotency key", "a fresh one"],
  ["business_id", "Business", "businessId"],
  ["iban", "IBAN", "iban"],
  ["bic", "BIC", "bic"],
  ["name", "Name", "name"],
  ["reference", "Reference", "Funding payout, sample"],
];

/** What a form of the composer says. Throws an Error when its amount is no object. */
function orderOf(form, about) {
  const { url, variant, count, amount, ...given } = Object.fromEntries(new FormData(form));
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ""));
  if (amount !== "") fields.amount = objectText(amount);
  const info = about.variants.find((each) => each.variant === variant);
  return { url, info, count: Number(count), fields, about };
}

/** As it was typed: parsed and written again, 10.10 would be 10.1. */
function objectText(text) {
  try {
    const value = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return text;
  } catch {
    // Told below.
  }
  throw new Error("Amount: a JSON object is expected.");
}

const input = (name, members) => html`<input name=${name} ...${plainText} ...${members} />`;

class Composer extends Component {
  read(form) {
    try {
      const order = orderOf(form, this.props.about);
      this.setState({ order, problem: "" });
      return order;
    } catch (error) {
      this.setState({ problem: error.message });
      return undefined;
    }
  }

  async send(event) {
    event.preventDefault();
    const order = this.read(event.target);
    if (order !== undefined) await sendPayout(order);
  }

  render({ about }, { order = plainOrder(about), problem = "" }) {
    return html`<form
      class="card composer"
      aria-label="Send a payout"
      oninput=${({ currentTarget }) => this.read(currentTarget)}
      onsubmit=${(event) => void this.send(event)}
    >
      <h2>Send a payout</h2>
      ${field("Payout endpoint", input("url", { defaultValue: about.url, required: true }))}
      <fieldset>
        <legend>What is sent</legend>
        ${about.variants.map(variantChoice)}
      </fieldset>
      <div hidden=${order.info.takesCount !== true}>
        ${field("Requests at once", input("count", { type: "number", min: "2", max: "100", defaultValue: "3" }))}
      </div>
      <details>
        <summary>Fields of the instruction</summary>
        <div class="grid">
          ${fieldNames.map(([name, label, sample]) =>
            field(label, input(name, { placeholder: about.sample[sample] ?? sample })),
          )}
          ${field("Amount (JSON)", input("amount", { placeholder: '{"value":"10.00","currency":"EUR"}' }))}
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
      <div class="send">
        <p class="problem" role="alert">${problem}</p>
        <button type="submit" class="primary">Send</button>
      </div>
    </form>`;
  }
}

const plainOrder = (about) => ({ url: about.url, info: about.variants[0], count: 3, fields: {}, about });

function variantChoice({ variant, flag, value, takesCount, sends, expected }) {
  const name =
    flag === undefined
      ? "as it should be"
      : `--${flag}${value === undefined ? "" : ` ${value}`}${takesCount ? " n" : ""}`;
  return html`<label class="choice">
    <input type="radio" name="variant" value=${variant} defaultChecked=${variant === "plain"} />
    <span>
      <strong>${name}</strong>${" "}<small class="expected">expects ${expected.join(", ")}</small>
      <small class="sends">${sends}</small>
    </span>
  </label>`;
}

async function sendPayout(order) {
  const sent = await perform(
    calls.payout(order),
    (payout) => `${payout.steps.map(answerOf).join(", ")}: ${verdictOf(payout).text}`,
    (payout) => verdictOf(payout).tone,
  );
  if (sent !== undefined) location.hash = `#/payouts/${sent.number}`;
}

// A wrong path answers everything alike: nothing is green until one payout was accepted there.
function verdictOf({ asExpected, isUrlProven }) {
  if (!asExpected) return { text: "not as expected", tone: "bad" };
  return isUrlProven
    ? { text: "as expected", tone: "good" }
    : { text: "as expected, but no payout was accepted there yet", tone: "doubt" };
}

const answerOf = ({ answer, error }) => String(answer?.status ?? error?.code);

/** The order of a payout that was sent, as another variant. */
function orderAgain({ url, count = 3, fields }, about, variant) {
  const { idempotencyKey, businessId, referenceField, ...others } = fields;
  const wire = {
    ...others,
    idempotency_key: idempotencyKey,
    business_id: businessId,
    reference_field: referenceField,
  };
  const given = Object.fromEntries(Object.entries(wire).filter(([, value]) => value !== undefined));
  return { url, info: about.variants.find((info) => info.variant === variant), count, fields: given, about };
}

function payoutParts(sent, about) {
  const { number, at, url, variant, steps } = sent;
  const verdict = verdictOf(sent);
  const order = (name) => orderAgain(sent, about, name);
  const spoil = (event) => {
    event.preventDefault();
    void sendPayout(order(event.target.elements.variant.value));
  };
  const choices = about.variants
    .slice(1)
    .map((info) => html`<option value=${info.variant}>${info.variant}</option>`);
  return html`<h2>Payout #${number}</h2>
    <div class="actions">
      ${button("Send again, signed anew", () => sendPayout(order("plain")), { class: "primary" })}
      <form class="joined" onsubmit=${spoil}>
        <select name="variant" aria-label="How it is spoilt">
          ${choices}
        </select>
        <button type="submit">Spoil</button>
      </form>
    </div>
    ${facts([
      ["Sent", time(at)],
      ["To", code(url)],
      ["Variant", variant],
      ["Verdict", badge(verdict.text, verdict.tone)],
    ])}
    ${steps.map((step, index) => stepParts(step, { index, all: steps.length, sent }))}
    <h3>The same from elsewhere</h3>
    ${shellLines(linesOf(calls.payout(order(variant))))}`;
}

function stepParts({ request, answer, error, expected, asExpected }, { index, all, sent }) {
  const open = all === 1;
  const { tone } = verdictOf({ asExpected, isUrlProven: sent.isUrlProven });
  const of = open ? "" : `Request ${index + 1} of ${all}`;
  const line = `${request.method} ${request.target}\n${headerLines(request.headers)}`;
  return html`<h3>${open ? "Answer" : `${of}: answer`}</h3>
    ${
      answer === undefined
        ? html`<p>${badge(error.code, "bad")}${` ${visible(error.message)}`}</p>`
        : answerParts(answer, expected, tone)
    }
    <h3>${open ? "Request" : of}</h3>
    ${block("Line and header fields", line, { open })}
    ${block(`Body: ${request.bodyBytes.toLocaleString("en")} bytes`, request.body, { open })}
    ${block("Signature base", request.signatureBase, { open })}`;
}

function answerParts({ status, meaning, headers, body, durationMs }, expected, tone) {
  const told = ` ${meaning}; expected ${expected.join(" or ")}, ${durationMs.toFixed(0)} ms`;
  return html`<p>${badge(`${status}`, tone)}${told}</p>
    ${body !== "" && block("Body of the answer", body)}
    ${block("Header fields of the answer", headerLines(headers), { open: false })}`;
}
