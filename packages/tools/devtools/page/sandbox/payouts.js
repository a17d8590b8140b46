// The payouts that were sent from here, below the composer.

import { bodyBlock } from "./body.js";
import { calls } from "./calls.js";
import { Composer, editedOrder, flagText, orderAgain, sendPayout } from "./composer.js";
import { badge, block, button, code, facts, headerLines, html } from "./kit.js";
import { shellLines, time, visible } from "./kit.js";
import { linkedRow, splitView } from "./list.js";
import { linesOf } from "./perform.js";
import { searchedList } from "./search.js";
import { get } from "./service.js";
import { payoutVerdict } from "./verdicts.js";

export function payoutsView({ payouts: about }, redraw) {
  const pageSize = 20;
  const payouts = searchedList({
    redraw,
    pageSize,
    async read({ offset, search }) {
      const query = `limit=${pageSize}&offset=${offset}&search=${encodeURIComponent(search)}`;
      const answer = await get(`/sandbox/payouts?${query}`);
      return { rows: answer.payouts, total: answer.total };
    },
  });
  // A new number is a new composer, which begins with what is to be edited.
  let edited = { number: 0 };
  const edit = (sent) => {
    edited = { number: edited.number + 1, start: editedOrder(sent, about) };
    location.hash = "#/payouts";
  };
  const view = splitView({
    name: "payouts",
    one: "Payout",
    choose: "A payout that was sent shows its bytes, its signature base and the answer here.",
    read: (number) => get(`/sandbox/payouts/${number}`),
    parts: (sent) => payoutParts(sent, about, edit),
    redraw,
    list: (number) =>
      html`<div class="list">
        <${Composer} about=${about} key=${edited.number} start=${edited.start} />
        <section aria-label="Payouts">
          <div class="bar">
            <h2>Sent from here</h2>
            ${payouts.searchField("key, kind or status")} ${payouts.list().pager()}
          </div>
          <ul class="rows">
            ${payouts.list().rows.map((payout) => row(payout, about, payout.number === number))}
          </ul>
          <p class="empty">${payouts.list().total === 0 && emptyText(payouts.text())}</p>
        </section>
      </div>`,
  });
  const reload = () => payouts.list().reload();
  return {
    ...view,
    refresh: reload,
    change({ kinds }) {
      if (kinds.includes("payouts")) reload();
    },
  };
}

const emptyText = (search) =>
  search === "" ? "Nothing was sent from here yet." : `No payout has "${visible(search)}" in it.`;

const infoOf = (about, variant) => about.variants.find((info) => info.variant === variant);

function row({ number: id, variant, at, answers, url, ...verdict }, about, isMarked) {
  const info = infoOf(about, variant);
  const { tone } = payoutVerdict(verdict);
  const answer = `${answers.slice(0, 4).join(", ")}${tone === "doubt" ? ", not known" : ""}`;
  return linkedRow(
    { view: "payouts", id, isMarked },
    html`<span class="what">${info.sends}${" "}<small class="flag">${flagText(info)}</small></span>
      ${badge(answer, tone)}
      <span class="meta">
        <span class="where">${visible(url.replace(/^https?:\/\//, ""))}</span>${time(at)}
      </span>`,
  );
}

function payoutParts(sent, about, edit) {
  const { number, at, url, variant, steps } = sent;
  const verdict = payoutVerdict(sent);
  const info = infoOf(about, variant);
  const otherwise = (event) => {
    event.preventDefault();
    void sendPayout(orderAgain(sent, about, event.target.elements.variant.value));
  };
  const others = about.variants.filter((each) => each !== info);
  const choices = others.map((each) => html`<option value=${each.variant}>${each.sends}</option>`);
  return html`<h2>Payout #${number}</h2>
    <div class="actions">
      ${button("Send the same again", () => sendPayout(orderAgain(sent, about)), { class: "primary" })}
      ${button("Edit and send", () => edit(sent))}
      <form class="joined" onsubmit=${otherwise}>
        <select name="variant" aria-label="How it is sent">
          ${choices}
        </select>
        <button type="submit">Send this way</button>
      </form>
    </div>
    ${facts([
      ["Sent", time(at)],
      ["To", code(url)],
      ["What", html`${info.sends}${" "}<small class="flag">${flagText(info)}</small>`],
      ["Verdict", badge(verdict.text, verdict.tone)],
    ])}
    ${steps.map((step, index) => stepParts(step, { index, all: steps.length, sent }))}
    <h3>The same from elsewhere</h3>
    ${shellLines(linesOf(calls.payout(orderAgain(sent, about))))}`;
}

function stepParts({ request, answer, error, expected, asExpected }, { index, all, sent }) {
  const open = all === 1;
  const { tone } = payoutVerdict({ asExpected, isUrlProven: sent.isUrlProven });
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
    ${bodyBlock(`Body: ${request.bodyBytes.toLocaleString("en")} bytes`, request.body, { open })}
    ${block("Signature base", request.signatureBase, { open })}`;
}

function answerParts({ status, meaning, headers, body, durationMs }, expected, tone) {
  return html`<p>
      ${badge(`${status}`, tone)}${` ${meaning}. `}
      <small>Expected: ${expected.join(" or ")}. After ${durationMs.toFixed(0)} ms.</small>
    </p>
    ${body !== "" && bodyBlock("Body of the answer", body)}
    ${block("Header fields of the answer", headerLines(headers), { open: false })}`;
}
