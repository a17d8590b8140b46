import { describeAll } from "./table/describe-all.ts";
import { drizzleOnMysql, drizzleOnPostgresql } from "./table/drizzle.ts";
import { knexRows } from "./table/knex.ts";
import { mysql2Row } from "./table/mysql2.ts";
import { pgRow } from "./table/pg.ts";
import { postgresJsRows } from "./table/postgres-js.ts";
import { sequelizeRows } from "./table/sequelize.ts";
import { typeOrmRows } from "./table/typeorm.ts";

describeAll(pgRow());
describeAll(mysql2Row);
for (const row of knexRows) describeAll(row);
for (const row of typeOrmRows) describeAll(row);
for (const row of sequelizeRows) describeAll(row);
for (const row of postgresJsRows) describeAll(row);
describeAll(drizzleOnPostgresql);
describeAll(drizzleOnMysql);
