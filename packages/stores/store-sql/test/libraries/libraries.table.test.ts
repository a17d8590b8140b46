import { beforeEach } from "@jest/globals";
import { describeAll } from "./table/describe-all.ts";
import { drizzleOnMysql, drizzleOnPostgresql } from "./table/drizzle.ts";
import { knexRows } from "./table/knex.ts";
import { sequelizeRows } from "./table/sequelize.ts";
import { typeOrmRows } from "./table/typeorm.ts";
import { allowWarnings } from "@countersign/test-support/runs/expect-warning.ts";

// What Sequelize and MikroORM print of a lost connection, whatever the options.
beforeEach(() => {
  allowWarnings(/^(?:Committing|Rolling back) transaction \S+ failed with error/);
  allowWarnings(/^Connection Error: /);
});

for (const row of knexRows) describeAll(row);
for (const row of typeOrmRows) describeAll(row);
for (const row of sequelizeRows) describeAll(row);
describeAll(drizzleOnPostgresql);
describeAll(drizzleOnMysql);
