import { DataTypes, Sequelize, type Transaction } from "sequelize";
import { fromSequelize } from "@countersign/store-sql/sequelize";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

export const sequelizeRows: readonly TableRow<Transaction>[] = [row("postgresql"), row("mysql")];

function row(engine: "mysql" | "postgresql"): TableRow<Transaction> {
  return {
    name: `Sequelize on ${engine}`,
    engine,
    async open() {
      const table = unusedTable();
      const sequelize = new Sequelize(servers[engine], { logging: false, pool: { max: poolSize } });
      const Payment = sequelize.define(
        "Payment",
        { id: { type: DataTypes.STRING, primaryKey: true } },
        { tableName: table, timestamps: false },
      );
      return {
        ...(await openTable(fromSequelize(sequelize), table)),
        exec: (transaction, text) => sequelize.query(text, { transaction }),
        insertByHandler: (transaction, id) => Payment.create({ id }, { transaction }),
        nest: (transaction, work) => sequelize.transaction({ transaction }, work),
        nonTransaction: sequelize,
        async end() {
          await sequelize.query(`DROP TABLE ${table}`);
          await sequelize.close();
        },
      };
    },
  };
}
