# #region install
npm init -y && npm pkg set type=module
npm install hono @hono/node-server @countersign/fetch \
  @countersign/store-sql libsql
npm install --save-dev @countersign/cli @countersign/devtools
# #endregion install
# #region webhooks
npm install countersign
npm install --save-dev tsx
npx tsx --env-file=.env server.ts
# #endregion webhooks
# #region pay
npx countersign payout --url http://127.0.0.1:3000/api/v1/transaction \
  --key keys/service-1.private.pem --keyid service-1 \
  --forwarded-for 192.0.2.10
# 200; and not from an address that is not listed:
npx countersign payout --url http://127.0.0.1:3000/api/v1/transaction \
  --key keys/service-1.private.pem --keyid service-1 \
  --forwarded-for 192.0.2.11 --expect 401
# 200: a webhook, which the proxy has received over https.
WEBHOOK_USERNAME=service WEBHOOK_PASSWORD=choose-one \
  WEBHOOK_SECRET=choose-another npx countersign webhook \
  --url http://127.0.0.1:3000/webhooks/made-up --forwarded-for 192.0.2.10
# #endregion pay
