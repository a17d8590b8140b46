# #region install
npm init -y && npm pkg set type=commonjs
npm install express@4 countersign @countersign/store-sql libsql
npm install --save-dev @countersign/cli @countersign/devtools
# #endregion install
# #region webhooks
npm install countersign
node --env-file=.env server.js
# #endregion webhooks
# #region doctor
npx countersign doctor --app ./server.js
# #endregion doctor
