BODY='{"webhook_id":"wh_1","timestamp":"2024-01-02T03:04:05.123456789Z",'\
'"events":[{"event_id":"ev_1","timestamp":"2024-01-02T03:04:05.1Z",'\
'"type":"buyer.status_changed","data":{"amount":"10.10"}}]}'
printf '%s' "$BODY" | openssl dgst -sha256 -hmac test-secret -binary | base64
# vajd4eF7ymePHdf08eWE3L5VMvPqPC1ttZ5xBdvBIu4=
