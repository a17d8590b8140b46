# #region install
npm init -y && npm pkg set type=module
npm install express libsql @countersign/express \
  @countersign/idempotency-guard @countersign/raw-body \
  @countersign/store-sql
# #endregion install
# #region postgres
npm install pg @countersign/store-sql
npm install --save-dev @countersign/cli
npx countersign migrate --store-url postgres://…
# #endregion postgres
# #region send
charge() {
  curl -s -w ' %{http_code}\n' http://127.0.0.1:3000/charges \
    -H "Authorization: Bearer test-token" -H "Idempotency-Key: $1" \
    -H "Content-Type: application/json" -d "$2"
}
charge 8e03978e '{"amount":1200}'   # 201, with an id
charge 8e03978e '{"amount":1200}'   # 201, the same id: Idempotency-Replayed
charge 8e03978e '{"amount":9900}'   # 422: the key of another request
# #endregion send
