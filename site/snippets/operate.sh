# #region install
npm install -D @countersign/cli @countersign/store-sql pg
export STORE_URL="$DATABASE_URL"   # the platform's own
npx countersign keys held --schema countersign
# #endregion install
# #region doctor
NODE_ENV=production npx countersign doctor --app ./dist/app.js \
  --url https://platform.example/api/v1/transaction
# #endregion doctor
# #region odd-key
npx countersign keys resolve --key-json '"a\u0000b"' --as done
# #endregion odd-key
# #region cron
npx countersign keys held --quiet && npx countersign work --quiet
# #endregion cron
# #region restore
sed 's/.*/payout:&/' paid-since-backup.txt > paid-keys.txt
npx countersign keys restore - --yes --by "$USER" \
  --note 'TICKET-4711: restored from the backup of 02:00' < paid-keys.txt
# #endregion restore
# #region missing
npx countersign keys list --state done --limit 1000 |
  awk 'NR > 1 { print $1 }' | sort > known.txt
sort paid-keys.txt | comm -23 - known.txt
# #endregion missing
