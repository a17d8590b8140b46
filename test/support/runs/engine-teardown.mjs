// After the last test.
import { stopStartedServers } from "./engine-setup.mjs";

// oxlint-disable-next-line import/no-default-export -- jest calls it
export default stopStartedServers;
