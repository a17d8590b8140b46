import express from "express";

/** What a version exports: the function that makes an app. */
export type ExpressFactory = typeof express;

/** Rows for describe.each. `express4` is handed in because each package declares the one that it is tested with. */
export function expressVersionsWith(
  express4: ExpressFactory,
): readonly (readonly [name: string, factory: ExpressFactory])[] {
  return [
    ["express 5", express],
    ["express 4", express4],
  ];
}
