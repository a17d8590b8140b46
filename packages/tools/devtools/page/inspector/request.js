// One request in full: first what its sender has to change, then how it was found.

import { Bases } from "./bases.js";
import { bodyPart } from "./bytes.js";
import { curlLine, paths } from "./calls.js";
import { errorParts } from "./errors.js";
import {
  block,
  code,
  duration,
  facts,
  headerLines,
  html,
  plural,
  prose,
  shellLines,
  time,
  visible,
  When,
} from "./kit.js";
import { isRefusedByApp, lifeList, outcomeBadge, outcomes, verdictPart } from "./verdicts.js";

export function requestParts(request, overview) {
  const { id, at, outcome, status, verdicts, life, claim, explanations, bases } = request;
  const { headers, method, target } = request;
  const decisive = verdicts.find((verdict) => verdict.outcome !== "pass") ?? verdicts.at(-1);
  const isOwnClaim = claim !== undefined && !explanations.some((each) => isOf(claim, each));
  return html`<div class="heading">
      <h2>Request #${id}</h2>
      ${outcomeBadge(outcome, status)}<span class="hint">${time(at)}</span>
    </div>
    <p class="target">${code(`${method} ${target}`)}</p>
    ${toldParts(request, overview)} ${errorParts(request.errors)}
    <h3>Guards, in their order</h3>
    <ol class="verdicts">
      ${verdicts.map(verdictPart)}
    </ol>
    ${
      bases &&
      html`<h3>Signature base</h3>
        <${Bases} expected=${bases.expected} />`
    }
    ${
      life.length > 0 &&
      html`<h3>What else happened</h3>
        ${lifeList(life, at)}`
    }
    ${isOwnClaim && claimParts(claim)}
    <h3>Request</h3>
    ${requestFacts(request)}
    ${block("Line and header fields", `${method} ${target}\n${headerLines(headers)}`)}
    ${bodyPart(request.body, "Body")}
    <h3>Answer</h3>
    ${bodyPart(request.answer, "Answer")} ${decisive && fromElsewhere(decisive)}`;
}

// Which option of inspector() has more said of a refusal.
const optionOf = {
  httpSignatureVerify: "signature",
  webhookHmac: "hmac",
  webhookBasicAuth: "basicAuth",
  ipAllowlist: "addresses",
};

/** What the sender has to change, in sentences, before anything else. */
function toldParts({ outcome, status, explanations, claim }, { explains }) {
  if (isRefusedByApp(outcome, status))
    return toldPart(
      status >= 500 ? "bad" : "doubt",
      `Every check has let it pass; the app itself has answered ${status}.`,
    );
  if (outcome === "pass") return toldPart("good", "Every check has let it pass: nothing is to be changed.");
  return explanations.map((each) => {
    const option = optionOf[each.guard];
    // What holds the key says more than that it is held.
    const found = isOf(claim, each) ? { ...each, ...claim } : each;
    const { guard, what, code: refusal, sentence, details } = found;
    const names = [guard, refusal, what === refusal ? undefined : what].filter((name) => name !== undefined);
    const more = html`${details.length > 0 && detailList(details)}
      ${
        explains[option] === false &&
        html`<p>
          What the sender has to change is told with the options of the check:${" "}
          ${code(`inspector({ ${option} })`)}
        </p>`
      } <small>${names.map(visible).join(" · ")}</small>`;
    return toldPart(outcomes[outcome][1], visible(sentence), more);
  });
}

function toldPart(tone, sentence, more) {
  return html`<div class="told ${tone}">
    <p>${sentence}</p>
    ${more}
  </div>`;
}

/** Whether what the store says now of the key is about this refusal. */
function isOf(claim, { code: refusal }) {
  return claim?.code !== undefined && claim.code === refusal;
}

function detailList(details) {
  return html`<ul>
    ${details.map((line) => html`<li>${prose(line)}</li>`)}
  </ul>`;
}

function claimParts({ what, sentence, details }) {
  const isOpen = what === "claim-held" || what === "claim-lease-ended";
  const more = html`${details.length > 0 && detailList(details)}`;
  return html`<h3>The idempotency key now</h3>
    ${toldPart(isOpen ? "doubt" : "calm", visible(sentence), more)}`;
}

function requestFacts(request) {
  const { status, scheme, clientAddress, keyid, idempotencyKey, nonce, durationMs, guards, at } = request;
  return facts([
    ["Received", html`<${When} ms=${at} />`],
    ["Answered", status === undefined ? "not yet" : String(status)],
    ["Time", durationMs === undefined ? undefined : `${duration(durationMs)}, ${plural(guards, "guard")}`],
    ["From", code(clientAddress)],
    ["Scheme", scheme],
    ["keyid", code(keyid)],
    ["Nonce", code(nonce)],
    ["Idempotency", code(idempotencyKey)],
  ]);
}

function fromElsewhere({ id }) {
  return html`<h3>The same from elsewhere</h3>
    ${shellLines([["API call", curlLine(paths.verdict(id))]])}
    <p class="hint">
      COUNTERSIGN_INSPECTOR_TOKEN is what follows #token= in the address that inspector() gives.
    </p>`;
}
