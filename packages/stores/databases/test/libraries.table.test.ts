import { describeAll } from "./table/describe-all.ts";
import { drizzleOnMysql, drizzleOnPostgresql } from "./table/drizzle.ts";
import { knexRows } from "./table/knex.ts";
import { sequelizeRows } from "./table/sequelize.ts";
import { typeOrmRows } from "./table/typeorm.ts";

for (const row of knexRows) describeAll(row);
for (const row of typeOrmRows) describeAll(row);
for (const row of sequelizeRows) describeAll(row);
describeAll(drizzleOnPostgresql);
describeAll(drizzleOnMysql);
