# #region install
npm init -y && npm pkg set type=module
npm install fastify @countersign/fastify @countersign/store-sql libsql
npm install --save-dev @countersign/cli @countersign/devtools
# #endregion install
# #region postgres
npm install fastify @countersign/fastify countersign \
  countersign/webhooks @countersign/store-sql
npm install drizzle-orm pg
# #endregion postgres
# #region webhooks
npm install countersign
npm install --save-dev tsx
npx tsx --env-file=.env server.ts
# #endregion webhooks
