// The views, and what every page of this kind has around them.

import { deliveriesView } from "./deliveries.js";
import { startFrame } from "./frame.js";
import { html } from "./kit.js";
import { payoutsView } from "./payouts.js";
import { simulationView } from "./simulation.js";

void startFrame({
  makers: { deliveries: deliveriesView, payouts: payoutsView, simulate: simulationView },
  paths: { overview: "/sandbox/overview", stream: "/sandbox/stream" },
  silent: "the sandbox does not answer",
  gate: {
    heading: "Open the address that the sandbox printed",
    words: html`It ends with a token for this start of <code>countersign sandbox</code>.`,
  },
  onChange({ kinds }, refresh) {
    if (kinds.includes("endpoints")) refresh();
  },
});
