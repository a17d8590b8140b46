export { long as default } from "./jest.config.mjs";
