# #region install
npm init -y && npm pkg set type=module
npm install countersign express libsql
npm install --save-dev @countersign/cli @countersign/devtools
# #endregion install
# #region keys
npx countersign keygen --out keys --keyid service-1
# #endregion keys
# #region start
node server.js
# #endregion start
# #region pay
npx countersign payout --url http://127.0.0.1:3000/api/v1/transaction \
  --key keys/service-1.private.pem --keyid service-1
# #endregion pay
# #region refuse
# 200, then 409: paid once
npx countersign payout --url http://127.0.0.1:3000/api/v1/transaction \
  --key keys/service-1.private.pem --keyid service-1 --duplicate
# 401
npx countersign payout --url http://127.0.0.1:3000/api/v1/transaction \
  --key keys/service-1.private.pem --keyid service-1 --tamper body
# one 200, the rest 409 or 503
npx countersign payout --url http://127.0.0.1:3000/api/v1/transaction \
  --key keys/service-1.private.pem --keyid service-1 --concurrent 20
# #endregion refuse
# #region look
npx countersign keys list --state done --store-url sqlite:platform.db
# #endregion look
# #region public-key
node -p 'const keys = JSON.parse(fs.readFileSync("keys/keys.json", "utf8"));
JSON.stringify(keys["service-1"])'
# #endregion public-key
