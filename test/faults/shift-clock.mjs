// node --import shift-clock.mjs: the wall clock of the process goes CLOCK_SHIFT_MS ahead. Monotonic time stays.
import process from "node:process";

const shiftMs = Number(process.env["CLOCK_SHIFT_MS"]);
const RealDate = Date;

globalThis.Date = class Date extends RealDate {
  constructor(...parts) {
    if (parts.length === 0) super(RealDate.now() + shiftMs);
    else super(...parts);
  }

  static now() {
    return RealDate.now() + shiftMs;
  }
};
