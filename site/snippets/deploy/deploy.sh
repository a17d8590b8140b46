# #region install
npm init -y && npm pkg set type=module
npm install countersign express pg prom-client @countersign/core \
  @countersign/http-signature-verify @countersign/observe \
  @countersign/store-sql
npm install --save-dev @countersign/cli typescript \
  @types/node@20 @types/express @types/pg
npx countersign migrate --store-url postgres://…
# #endregion install
# #region roll
# One process after the other, each when the one before is ready.
for port in 3001 3002 3003; do
  systemctl restart "platform@$port"
  until curl -fs "http://127.0.0.1:$port/readyz"; do sleep 1; done
done
# #endregion roll
