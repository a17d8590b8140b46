import { beforeEach } from "@jest/globals";
// Libraries whose newest version needs Node 22. .ci/run runs this file twice: with those of the lock file, and there with the newest.
import { describeAll } from "./table/describe-all.ts";
import { kyselyRows } from "./table/kysely.ts";
import { mikroOrmOnMysql, mikroOrmOnPostgresql } from "./table/mikro-orm.ts";
import { allowWarnings } from "@countersign/test-support/runs/expect-warning.ts";

// What MikroORM prints of a lost connection, whatever the options.
beforeEach(() => {
  allowWarnings(/^Connection Error: /);
});

for (const row of kyselyRows) describeAll(row);
for (const row of mikroOrmOnPostgresql) describeAll(row);
for (const row of mikroOrmOnMysql) describeAll(row);
