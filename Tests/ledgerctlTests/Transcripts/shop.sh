# What transcripts share: receipts, import lines, and a small shop's history whose figures can be checked by hand.

# An invented transaction receipt of a bundle, different for each number.
receipt() { # BUNDLE NUMBER
  purchase=$(printf '{"bid"="%s";"number"="%s";}' "$1" "$2" | base64 -w 0)
  printf '{"signature"="AAAA";"purchase-info"="%s";}' "$purchase" | base64 -w 0
}

# Epoch milliseconds.
ms() { echo "$(date -u -d "$1" +%s)000"; }

# A purchase of a reply. MORE begins with a comma.
row() { # PRODUCT TRANSACTION ORIGINAL-TRANSACTION DATE [MORE]
  at=$(ms "$4")
  printf '{"product_id":"%s","transaction_id":"%s","original_transaction_id":"%s",' "$1" "$2" "$3"
  printf '"purchase_date_ms":"%s","original_purchase_date_ms":"%s","quantity":"1"%s}' "$at" "$at" "$5"
}

# An import line: an upload and the reply that was recorded a second later. MORE begins with a comma.
line() { # RECEIPT-NUMBER TIME ROWS MORE [ENVIRONMENT] [STATUS]
  printf '{"marketplace":"itunes","receipt":"%s","occurred_at":"%s"%s,' "$(receipt com.example.shop "$1")" "$2" "$4"
  printf '"verification":{"occurred_at":"%s","endpoint":"production","reply":' "${2%Z}.500Z"
  printf '{"status":%s,"environment":"%s","receipt":{"bundle_id":"com.example.shop",' "${6:-0}" "${5:-Production}"
  printf '"request_date_ms":"%s","in_app":[%s]}}}}\n' "$(ms "$2")" "$3"
}

# The shop's history. Sales, all of Production but the ninth:
#   1001  pro.lifetime  9.99 EUR, DE, anna                    by transaction (line 1)
#   1002  coins         3 × 4.99 = 14.97 USD, US, bob         by the shorthand (line 2);
#                       returned on 2019-04-09 (line 6), reversed on 2019-05-01 (line 7)
#   500   pro.month     trial, DE, anna                       (line 3)
#   501   pro.month     5.00 EUR, DE, anna                    by product (line 4)
#   502   pro.month     5.00 EUR, DE, anna                    carried forward from 501 (line 5)
#   1006  pro.lifetime  unpriced, neither country nor user    (line 8)
#   9001  coins         Sandbox, 4.99 USD, US, tester         (line 9)
# Line 10 has a reply with status 21003: no sale, the receipt is fraud.
shop_history() {
  line 1 2019-01-10T12:00:00Z "$(row pro.lifetime 1001 1001 2019-01-10T11:59:00Z)" ',"country_code":"DE","user_identifier":"anna","metadata":{"prices":[{"transaction_id":"1001","product_id":"pro.lifetime","price":"9.99","currency":"EUR"}]}'
  coins=$(row coins 1002 1002 2019-01-15T08:00:00Z | sed 's/"quantity":"1"/"quantity":"3"/')
  line 2 2019-01-15T08:00:10Z "$coins" ',"country_code":"US","user_identifier":"bob","metadata":{"price":"4.99","currency":"USD"}'
  trial=$(row pro.month 1003 1003 2019-02-01T10:00:00Z ',"web_order_line_item_id":"500","is_trial_period":"true"')
  line 3 2019-02-01T10:00:30Z "$trial" ',"country_code":"de","user_identifier":"anna"'
  first=$(row pro.month 1004 1003 2019-03-01T10:00:00Z ',"web_order_line_item_id":"501"')
  line 4 2019-03-01T18:00:00Z "$trial,$first" ',"country_code":"DE","user_identifier":"anna","metadata":{"prices":[{"product_id":"pro.month","price":"5.00","currency":"EUR"}]}'
  line 4 2019-04-02T09:00:00Z "$trial,$first,$(row pro.month 1005 1003 2019-04-01T10:00:00Z ',"web_order_line_item_id":"502"')" ',"country_code":"DE","user_identifier":"anna"'
  line 2 2019-04-10T07:00:00Z "$(echo "$coins" | sed "s/}$/,\"cancellation_date_ms\":\"$(ms 2019-04-09T16:00:00Z)\",\"cancellation_reason\":\"1\"}/")" ',"country_code":"US","user_identifier":"bob"'
  line 2 2019-05-01T07:00:00Z "$coins" ',"country_code":"US","user_identifier":"bob"'
  line 8 2019-05-05T20:00:00Z "$(row pro.lifetime 1006 1006 2019-05-05T19:00:00Z)" ''
  line 9 2019-05-06T20:00:00Z "$(row coins 9001 9001 2019-05-06T19:59:00Z)" ',"country_code":"US","user_identifier":"tester","metadata":{"price":"4.99","currency":"USD"}' Sandbox
  line 10 2019-05-07T20:00:00Z "$(row coins 6666 6666 2019-05-07T19:59:00Z)" ',"country_code":"US","user_identifier":"mallory"' Production 21003
}

# A ledger in `shop` that holds the history.
shop_ledger() {
  ledgerctl init shop --origin example.com/shop > init.out
  export LEDGER_DIR=shop
  shop_history > shop.ndjson
  ledgerctl import --register-apps shop.ndjson
}

# Runs a command without root's right to read and write what it may not.
unprivileged() {
  if [ "$(id -u)" = 0 ]; then
    setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search "$@"
  else
    "$@"
  fi
}

# Runs a line of shell on a terminal of so many columns; what it prints there has no carriage returns.
terminal() { # COLUMNS LINE
  SHELL=/bin/sh NO_COLOR=1 script -q -e -c "stty cols $1; $2" /dev/null < /dev/null | tr -d '\r'
}

# June 2019, which docs/reports.md closes. Sales, all of Production:
#   1990  coins         2 × 4.99 USD, US, in May, returned on 2019-06-12
#   2001  pro.lifetime  9.99 EUR, DE
#   2002  coins         3 × 4.99 USD, US
#   2003  pro.lifetime  1200 JPY, JP
#   2004  pro.lifetime  without a price, FR: a price list gives it one
#   2005  coins         1.99 EUR, DE, on 30 June by UTC and on 1 July in Berlin
june_history() {
  coins=$(row coins 1990 1990 2019-05-20T08:00:00Z | sed 's/"quantity":"1"/"quantity":"2"/')
  line 20 2019-05-20T08:01:00Z "$coins" ',"country_code":"US","user_identifier":"bob","metadata":{"price":"4.99","currency":"USD"}'
  line 21 2019-06-03T12:00:00Z "$(row pro.lifetime 2001 2001 2019-06-03T11:59:00Z)" ',"country_code":"DE","user_identifier":"anna","metadata":{"price":"9.99","currency":"EUR"}'
  line 22 2019-06-10T08:00:10Z "$(row coins 2002 2002 2019-06-10T08:00:00Z | sed 's/"quantity":"1"/"quantity":"3"/')" ',"country_code":"US","user_identifier":"carol","metadata":{"price":"4.99","currency":"USD"}'
  line 20 2019-06-13T07:00:00Z "$(echo "$coins" | sed "s/}$/,\"cancellation_date_ms\":\"$(ms 2019-06-12T16:00:00Z)\",\"cancellation_reason\":\"1\"}/")" ',"country_code":"US","user_identifier":"bob"'
  line 23 2019-06-15T03:00:00Z "$(row pro.lifetime 2003 2003 2019-06-15T02:59:00Z)" ',"country_code":"JP","user_identifier":"dai","metadata":{"price":"1200","currency":"JPY"}'
  line 24 2019-06-20T10:00:00Z "$(row pro.lifetime 2004 2004 2019-06-20T09:59:00Z)" ',"country_code":"FR","user_identifier":"eve"'
  line 25 2019-06-30T22:31:00Z "$(row coins 2005 2005 2019-06-30T22:30:00Z)" ',"country_code":"DE","user_identifier":"finn","metadata":{"price":"1.99","currency":"EUR"}'
}

# July 2019: a sale of June that was not known in June, and a return of one that was.
july_history() {
  line 26 2019-07-04T18:00:00Z "$(row pro.lifetime 2006 2006 2019-06-25T17:00:00Z)" ',"country_code":"NL","user_identifier":"gus","metadata":{"price":"9.99","currency":"EUR"}'
  line 22 2019-07-06T07:00:00Z "$(row coins 2002 2002 2019-06-10T08:00:00Z | sed "s/\"quantity\":\"1\"/\"quantity\":\"3\",\"cancellation_date_ms\":\"$(ms 2019-07-05T16:00:00Z)\",\"cancellation_reason\":\"0\"/")" ',"country_code":"US","user_identifier":"carol"'
}

# The reference rates that docs/reports.md declares.
june_rates() {
  printf 'date,base,quote,rate\n2019-06-03,EUR,USD,1.1185\n2019-06-10,EUR,USD,1.1301\n'
  printf '2019-06-12,EUR,USD,1.1323\n2019-06-14,EUR,JPY,121.9\n'
}

# The files with which docs/reports.md closes June 2019 and looks back at it.
month_files() {
  june_history >june.ndjson
  july_history >july.ndjson
  june_rates >rates-june.csv
  printf 'date,base,quote,rate\n2019-06-10,EUR,USD,1.1311\n2019-07-05,EUR,USD,1.126\n' >rates-july.csv
  printf 'product_id,country_code,currency,price,effective_from\npro.lifetime,FR,EUR,8.99,2019-01-01\n' >prices.csv
}
