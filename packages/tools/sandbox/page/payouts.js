// The payout composer with every variant, and the payouts that were sent from here.

import { calls } from "./calls.js";
import { badge, block, button, field, h, headerLines, pager, throttled, time, visible } from "./elements.js";
import { callLines, perform } from "./perform.js";
import { get } from "./service.js";

const pageSize = 20;

export function payoutsView({ payouts: about }) {
  const list = payoutList(about);
  const detail = payoutDetail(about);
  const composer = payoutComposer(about);
  const element = h(
    "div",
    { class: "split payouts" },
    h("div", { class: "list" }, composer.element, list.element),
    detail.element,
  );
  return {
    element,
    open([number]) {
      element.classList.toggle("opened", number !== undefined);
      list.mark(number);
      detail.open(number);
    },
    refresh: () => list.reload(),
    change({ kinds }) {
      if (kinds.includes("payouts")) list.reload();
    },
  };
}

const fieldNames = [
  ["idempotency_key", "Idempotency key", "a fresh one"],
  ["business_id", "Business", "businessId"],
  ["iban", "IBAN", "iban"],
  ["bic", "BIC", "bic"],
  ["name", "Name", "name"],
  ["reference", "Reference", "Funding payout, sample"],
];

function payoutComposer(about) {
  const url = h("input", {
    name: "url",
    value: about.url,
    required: true,
    spellcheck: "false",
    autocomplete: "off",
  });
  const count = h("input", { name: "count", type: "number", min: "2", max: "100", value: "3" });
  const amount = h("input", {
    name: "amount",
    placeholder: '{"value":"10.00","currency":"EUR"}',
    spellcheck: "false",
    autocomplete: "off",
  });
  const inputs = fieldNames.map(([name, label, sample]) => [
    name,
    label,
    h("input", {
      name,
      placeholder: about.sample[sample] ?? sample,
      spellcheck: "false",
      autocomplete: "off",
    }),
  ]);
  const countField = field("Requests at once", count);
  const preview = h("div", { class: "preview" });
  const problem = h("p", { class: "problem", role: "alert" });
  const form = h("form", { class: "card composer", "aria-label": "Send a payout" });
  const chosen = () =>
    about.variants.find(({ variant }) => variant === form.elements.namedItem("variant").value);

  const order = () => {
    const fields = Object.fromEntries(
      inputs.filter(([, , { value }]) => value !== "").map(([name, , { value }]) => [name, value]),
    );
    if (amount.value !== "") fields.amount = objectText(amount.value);
    return { url: url.value, info: chosen(), count: Number(count.value), fields, about };
  };
  const show = () => {
    countField.hidden = chosen().takesCount !== true;
    problem.textContent = "";
    try {
      preview.replaceChildren(callLines(calls.payout(order())));
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const send = async (event) => {
    event.preventDefault();
    show();
    if (problem.textContent !== "") return;
    await sendPayout(order());
  };
  form.append(
    h("h2", {}, "Send a payout"),
    field("Payout endpoint", url),
    h(
      "fieldset",
      {},
      h("legend", {}, "What is sent"),
      about.variants.map((info) => variantChoice(info)),
    ),
    countField,
    h(
      "details",
      {},
      h("summary", {}, "Fields of the instruction"),
      h(
        "div",
        { class: "grid" },
        inputs.map(([, label, input]) => field(label, input)),
        field("Amount (JSON)", amount),
      ),
    ),
    h(
      "details",
      {},
      h("summary", {}, `Key ${about.keyid}`),
      h(
        "p",
        { class: "hint" },
        "The platform needs this public key under this keyid. The private key stays with the service.",
      ),
      block("Public key", about.publicKeyPem),
    ),
    h("details", {}, h("summary", {}, "As a command and as an API call"), preview),
    h("div", { class: "send" }, problem, h("button", { type: "submit", class: "primary" }, "Send")),
  );
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => void send(event));
  show();
  return { element: form };
}

function variantChoice({ variant, flag, value, takesCount, sends, expected }) {
  const name =
    flag === undefined
      ? "as it should be"
      : `--${flag}${value === undefined ? "" : ` ${value}`}${takesCount ? " n" : ""}`;
  return h(
    "label",
    { class: "choice" },
    h("input", { type: "radio", name: "variant", value: variant, checked: variant === "plain" }),
    h(
      "span",
      {},
      h("strong", {}, name),
      " ",
      h("small", { class: "expected" }, `expects ${expected.join(", ")}`),
      h("small", { class: "sends" }, sends),
    ),
  );
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

function payoutList() {
  let offset = 0;
  let marked;
  const items = h("ul", { class: "rows" });
  const turn = (to) => {
    offset = Math.max(0, to);
    void load();
  };
  const pages = pager({ onNewer: () => turn(offset - pageSize), onOlder: () => turn(offset + pageSize) });
  const heading = h("h2", {}, "Sent from here");
  const empty = h("p", { class: "empty" });
  const element = h(
    "section",
    { "aria-label": "Payouts" },
    h("div", { class: "bar" }, heading, pages.element),
    items,
    empty,
  );
  async function load() {
    const { payouts, total } = await get(`/sandbox/payouts?limit=${pageSize}&offset=${offset}`);
    pages.update({ first: offset, shown: payouts.length, total });
    empty.textContent = total === 0 ? "No payout was sent from here yet." : "";
    items.replaceChildren(
      ...payouts.map(({ number, variant, at, answers, url, ...verdict }) =>
        h(
          "li",
          {},
          h(
            "a",
            { href: `#/payouts/${number}` },
            h("span", { class: "number" }, `#${number}`),
            h("span", { class: "what" }, variant),
            badge(answers.slice(0, 4).join(", "), verdictOf(verdict).tone),
            h(
              "span",
              { class: "meta" },
              h("span", { class: "where" }, visible(url.replace(/^https?:\/\//, ""))),
              time(at),
            ),
          ),
        ),
      ),
    );
    mark(marked);
  }
  function mark(number) {
    marked = number;
    for (const link of items.querySelectorAll("a")) {
      if (link.hash === `#/payouts/${number}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  const reload = throttled(100, () => void load().catch(() => {}));
  reload();
  return { element, mark, reload };
}

function payoutDetail(about) {
  const element = h("section", { class: "detail", "aria-label": "One payout", tabindex: "-1" });
  async function open(number) {
    if (number === undefined) {
      element.replaceChildren(
        h(
          "p",
          { class: "empty" },
          "A payout that was sent shows its bytes, its signature base and the answer here.",
        ),
      );
      return;
    }
    const sent = await get(`/sandbox/payouts/${encodeURIComponent(number)}`).catch(() => undefined);
    if (sent === undefined)
      element.replaceChildren(h("p", { class: "empty" }, `There is no payout #${number} any more.`));
    else element.replaceChildren(...payoutParts(sent, about));
    element.focus({ preventScroll: true });
  }
  return { element, open: (number) => void open(number) };
}

function payoutParts(sent, about) {
  const { number, at, url, variant, count, fields, steps } = sent;
  const verdict = verdictOf(sent);
  const wire = {
    ...fields,
    idempotency_key: fields.idempotencyKey,
    business_id: fields.businessId,
    reference_field: fields.referenceField,
  };
  for (const name of ["idempotencyKey", "businessId", "referenceField"]) delete wire[name];
  const given = Object.fromEntries(Object.entries(wire).filter(([, value]) => value !== undefined));
  const order = (name) => ({
    url,
    info: about.variants.find((info) => info.variant === name),
    count: count ?? 3,
    fields: given,
    about,
  });
  const choice = h(
    "select",
    { "aria-label": "How it is spoilt" },
    about.variants.slice(1).map((info) => h("option", { value: info.variant }, info.variant)),
  );
  const facts = [
    ["Sent", time(at)],
    ["To", h("code", {}, visible(url))],
    ["Variant", variant],
    ["Verdict", badge(verdict.text, verdict.tone)],
  ];
  return [
    h("a", { class: "back", href: "#/payouts" }, "All payouts"),
    h("h2", {}, `Payout #${number}`),
    h(
      "div",
      { class: "actions" },
      button("Send again, signed anew", () => sendPayout(order("plain")), { class: "primary" }),
      h(
        "span",
        { class: "joined" },
        choice,
        button("Spoil", () => sendPayout(order(choice.value))),
      ),
    ),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
    ...steps.flatMap((step, index) => stepParts({ ...step, tone: toneOf(step, sent) }, index, steps.length)),
    h("h3", {}, "The same from elsewhere"),
    callLines(calls.payout(order(variant))),
  ];
}

const toneOf = ({ asExpected }, { isUrlProven }) => verdictOf({ asExpected, isUrlProven }).tone;

function stepParts({ request, answer, error, expected, tone }, index, all) {
  const told =
    answer === undefined
      ? [h("p", {}, badge(error.code, "bad"), " ", visible(error.message))]
      : answerParts(answer, expected, tone);
  return [
    h("h3", {}, all === 1 ? "Answer" : `Request ${index + 1} of ${all}: answer`),
    ...told,
    h("h3", {}, all === 1 ? "Request" : `Request ${index + 1} of ${all}`),
    block("Line and header fields", `${request.method} ${request.target}\n${headerLines(request.headers)}`, {
      open: all === 1,
    }),
    block(`Body: ${request.bodyBytes.toLocaleString("en")} bytes`, request.body, { open: all === 1 }),
    block("Signature base", request.signatureBase, { open: all === 1 }),
  ];
}

function answerParts({ status, meaning, headers, body, durationMs }, expected, tone) {
  return [
    h(
      "p",
      {},
      badge(`${status}`, tone),
      ` ${meaning}; expected ${expected.join(" or ")}, ${durationMs.toFixed(0)} ms`,
    ),
    body !== "" && block("Body of the answer", body),
    block("Header fields of the answer", headerLines(headers), { open: false }),
  ].filter((part) => part !== false);
}
