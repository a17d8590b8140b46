# #region install
npm init -y && npm pkg set type=module
npm install fastify @countersign/fastify @countersign/store-sql libsql
npm install --save-dev @countersign/cli @countersign/devtools
# #endregion install
# #region postgres
npm install fastify @countersign/fastify countersign \
  @countersign/store-sql drizzle-orm pg
npm install --save-dev @countersign/cli
npx countersign migrate --store-url postgres://…
# #endregion postgres
# #region webhooks
npm install countersign
npm install --save-dev tsx
npx tsx --env-file=.env server.ts
# #endregion webhooks
