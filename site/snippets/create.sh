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
# #region sender
npm run play
# #endregion sender
