# #region install
npm init -y && npm pkg set type=module
npm install fastify @countersign/fastify @countersign/store-sqlite libsql
npm install --save-dev @countersign/cli @countersign/sandbox
# #endregion install
# #region webhooks
npm install @countersign/webhooks
npm install --save-dev tsx
npx tsx --env-file=.env server.ts
# #endregion webhooks
