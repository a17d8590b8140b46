import express from "express";
import express4 from "express4";

/** What a version exports: the function that makes an app. */
export type ExpressFactory = typeof express;

/** Rows for describe.each: every version that the middlewares run on. */
export const expressVersions: readonly (readonly [name: string, factory: ExpressFactory])[] = [
  ["express 5", express],
  ["express 4", express4],
];
