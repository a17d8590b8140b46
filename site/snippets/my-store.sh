# #region install
npm init -y && npm pkg set type=module
npm install @countersign/core @countersign/idempotency pg
npm install --save-dev @countersign/store-contract tsx
# #endregion install
# #region test
export DATABASE_URL=postgres://postgres@127.0.0.1:5432/test
npx tsx --test my-store.test.ts
# #endregion test
