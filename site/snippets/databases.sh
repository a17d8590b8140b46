# #region install
npm install @countersign/payout @countersign/databases \
  @countersign/store-postgres
npm install -D @countersign/cli @countersign/sandbox
# #endregion install
