# #region install
npm install countersign @countersign/store-sql express
npm install -D @countersign/cli @countersign/devtools
# #endregion install
# #region install-sqlite
npm install countersign @countersign/store-sql express libsql
npm install -D @countersign/cli @countersign/devtools
# #endregion install-sqlite
# #region migrate
npx countersign migrate --store-url postgres://…
# #endregion migrate
# #region migrate-mariadb
npx countersign migrate --store-url mysql://…
# #endregion migrate-mariadb
