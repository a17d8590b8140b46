import { describeDriver } from "./table/describe-all.ts";
import { mysql2Row } from "./table/mysql2.ts";
import { pgRow } from "./table/pg.ts";
import { postgresJsRows } from "./table/postgres-js.ts";

describeDriver(pgRow());
describeDriver(mysql2Row);
for (const row of postgresJsRows) describeDriver(row);
