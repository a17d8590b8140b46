// The views, and what every page of this kind has around them.

import { deliveriesView } from "./deliveries.js";
import { h } from "./elements.js";
import { startFrame } from "./frame.js";
import { payoutsView } from "./payouts.js";
import { simulationView } from "./simulation.js";

void startFrame({
  makers: { deliveries: deliveriesView, payouts: payoutsView, simulate: simulationView },
  paths: { overview: "/sandbox/overview", stream: "/sandbox/stream" },
  silent: "the sandbox does not answer",
  gate: {
    heading: "Open the address that the sandbox printed",
    words: ["It ends with a token for this start of ", h("code", {}, "countersign sandbox"), "."],
  },
  onChange({ kinds }, refresh) {
    if (kinds.includes("endpoints")) refresh();
  },
});
