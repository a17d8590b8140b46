# #region install
npm init -y && npm pkg set type=module
npm install express libsql @countersign/express \
  @countersign/idempotency-guard @countersign/raw-body \
  @countersign/store-sql @countersign/webhook-hmac
# #endregion install
# #region start
WEBHOOK_SECRET=test-secret node server.js
# #endregion start
# #region send
body='{"action":"opened"}'
signature=$(printf %s "$body" | openssl dgst -sha256 -hmac test-secret |
  sed 's/.*= *//')
deliver() {
  curl -s -w ' %{http_code}\n' http://127.0.0.1:3000/webhooks/github \
    -H "Content-Type: application/json" -H "X-GitHub-Event: issues" \
    -H "X-GitHub-Delivery: $1" -H "X-Hub-Signature-256: sha256=$signature" \
    -d "$2"
}
deliver 72d3162e "$body"                 # 200, handled
deliver 72d3162e "$body"                 # 200, not handled again
deliver 8f1c0b4a '{"action":"closed"}'   # 401: not what was signed
# #endregion send
# #region postgres
npm install pg @countersign/store-sql
npm install --save-dev @countersign/cli
npx countersign migrate --store-url postgres://…
# #endregion postgres
# #region held
npm install @countersign/cli
npx countersign keys held --store-url sqlite:webhooks.db
# or --as done
npx countersign keys resolve github:72d3162e --as released \
  --store-url sqlite:webhooks.db
# #endregion held
