# #region install
npm install countersign @countersign/store-sql \

npm install -D @countersign/cli @countersign/devtools
# #endregion install
# #region install-postgres-js
npm install countersign @countersign/store-sql \

npm install -D @countersign/cli @countersign/devtools pg   # for migrate
# #endregion install-postgres-js
# #region install-mariadb
npm install countersign @countersign/store-sql \

npm install -D @countersign/cli @countersign/devtools
# #endregion install-mariadb
# #region install-sqlite
npm install countersign @countersign/store-sql libsql
npm install -D @countersign/cli @countersign/devtools
# #endregion install-sqlite
# #region migrate
npx countersign migrate --store-url postgres://…   # of @countersign/cli
# #endregion migrate
# #region migrate-mariadb
npx countersign migrate --store-url mysql://…   # of @countersign/cli
# #endregion migrate-mariadb
