#!/usr/bin/env node
// `npx countersign` lands here where the command is not installed: npx runs a package's only program, whatever its name. Named
// `countersign`, this would overwrite the command in node_modules/.bin. It fetches nothing: what runs is for the user to say.
process.stderr.write(
  "The countersign command is a package of its own: npm install --save-dev @countersign/cli, then npx countersign\n",
);
process.exitCode = 2;
