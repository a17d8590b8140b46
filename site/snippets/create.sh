# #region create
npm create countersign@latest my-platform
cd my-platform
npm install
npm test
# #endregion create
# #region flags
npm create countersign@latest my-platform -- \
  --framework fastify --store postgres
# #endregion flags
# #region play
npm run keys
npm run dev
# #endregion play
# #region payout
npm install --save-dev @countersign/cli
. ./.env
npx countersign payout --url http://127.0.0.1:$PORT/api/v1/transaction \
  --key keys/$KEYID.private.pem --keyid $KEYID \
  --header "X-Forwarded-For: 192.0.2.10"
# #endregion payout
