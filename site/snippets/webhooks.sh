# #region settings
export WEBHOOK_USERNAME=service WEBHOOK_PASSWORD=choose-one
export WEBHOOK_SECRET=choose-another
# #endregion settings
# #region send
npx countersign payout --url http://127.0.0.1:3000/api/v1/transaction \
  --key keys/service-1.private.pem --keyid service-1 \
  --forwarded-for 192.0.2.10
npx countersign webhook --url http://127.0.0.1:3000/webhooks/made-up \
  --forwarded-for 192.0.2.10
# #endregion send
# #region sandbox
export COUNTERSIGN_API_KEY=test-api-key
npx countersign sandbox --port 4000 --forwarded-for 192.0.2.10 \
  --key keys/service-1.private.pem --keyid service-1
# #endregion sandbox
# #region trigger
export COUNTERSIGN_API_KEY=test-api-key
npx countersign endpoint create --base-url http://127.0.0.1:4000 \
  --url http://127.0.0.1:3000/webhooks/made-up
npx countersign trigger buyer.status_changed --url http://127.0.0.1:4000
# #endregion trigger
