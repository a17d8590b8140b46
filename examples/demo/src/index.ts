export { listedIp, runCase, type CaseResult, type DemoCase, type Report } from "./cases.ts";
export { lastingFolder, temporaryFolder } from "./folder.ts";
export { DemoStartError, startDemoPlatform, type DemoPlatform } from "./platform.ts";
export { startDemoService, type DemoService } from "./service.ts";
export { demoKeyid, prepareDemo, type DemoSetup } from "./setup.ts";
export { printedTable, type ResultTable } from "./table.ts";
export { answersOf, ownWebhook, resultOf } from "./webhook-cases.ts";
