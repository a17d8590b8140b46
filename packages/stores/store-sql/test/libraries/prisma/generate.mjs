// What `prisma generate` does with FOLDER/schema.prisma, without the command line: that has parts under licences that the project does
// not take. Downloads nothing: a client with a driver adapter needs no engine.
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";

// The ES modules of these packages name files that are missing in them.
const require = createRequire(import.meta.url);
const { PrismaClientTsGenerator } = require("@prisma/client-generator-ts");
const { getGenerators } = require("@prisma/internals");

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: node generate.mjs FOLDER");
const [generator] = await getGenerators({
  schemaPath: path.join(folder, "schema.prisma"),
  registry: { "prisma-client": { type: "in-process", generator: new PrismaClientTsGenerator() } },
  skipDownload: true,
  cliCommand: "prisma generate",
});
await generator.generate();
generator.stop();
