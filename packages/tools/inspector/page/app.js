// The views, and what every page of this kind has around them.

import { paths } from "./calls.js";
import { h } from "./elements.js";
import { startFrame } from "./frame.js";
import { keysView } from "./keys.js";
import { tellTime } from "./parts.js";
import { requestsView } from "./requests.js";
import { storesView } from "./stores.js";

setInterval(tellTime, 5000);
void startFrame({
  makers: { requests: requestsView, keys: keysView, stores: storesView },
  paths,
  silent: "the platform does not answer",
  gate: {
    heading: "Open the address that the inspector gave",
    words: [
      "It is ",
      h("code", {}, "pageUrl"),
      " of ",
      h("code", {}, "inspector()"),
      ", and ends with a token for this start of the platform.",
    ],
  },
});
