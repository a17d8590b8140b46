#!/usr/bin/env node
// `npx countersign` comes here where the command is not installed, since npx runs the only program of a package whatever its name. Under
// the name `countersign` it would overwrite the command in node_modules/.bin. It fetches nothing: what runs is for the user to say.
process.stderr.write(
  "The countersign command is a package of its own: npm install --save-dev @countersign/cli, then npx countersign\n",
);
process.exitCode = 2;
