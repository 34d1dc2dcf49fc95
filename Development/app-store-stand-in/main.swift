// A stand-in for the App Store, and a signer of receipts that it knows. Never part of what is shipped.
import AppStoreAuthority
import Glibc
import ProgramSupport

/// The names of faults, in lines of the help's width.
let faults = ObjectFault.allCases.map(\.rawValue).reduce(into: "") { text, name in
  let line = text.split(separator: "\n").last?.count ?? 0
  text += text.isEmpty ? name : line + name.count > 94 ? ",\n" + name : ", " + name
}

let help = """
  Usage: app-store-stand-in --authority DIR [options]
         app-store-stand-in sign-receipts --authority DIR --customers N --seed S [options]
         app-store-stand-in sign-transactions --authority DIR --customers N --seed S [options]
         app-store-stand-in sign-notifications --authority DIR --customers N --seed S [options]
         app-store-stand-in sign-objects --authority DIR [-o FILE]
         app-store-stand-in notify --url URL --authority DIR --customers N --seed S --rate R [options]

  Answers verifyReceipt over HTTP on 127.0.0.1 for receipts of a test authority, whose keys lie in
  DIR and are made where there are none. Prints one line of JSON (where it listens, which root to
  pin), then runs until SIGTERM or SIGINT.

    --port N               default 0: the system chooses
    --shared-secret TEXT   what receipts with subscriptions must come with; default any
    --delay-ms N           answers so much later
    --no-renewals          subscriptions do not renew as time goes
    --control JSON         a control request, or an array of them, carried out at the start
    --until-stdin-ends     runs until standard input ends instead

  With --server-api-key it answers the App Store Server API too (/inApps and /sandbox/inApps), about
  the customers of sign-transactions:

    --server-api-key FILE  whose tokens are good: a private key in PEM (.p8), made where there is none
    --server-api-rate N    calls a second of each environment; default any
    --notifications-url U  http://127.0.0.1:PORT/PATH, which is notified of tests and of what requests
                           to /control do to these customers, again as of notify (--retry-scale F)
    --customers N, --seed S, --at MS, --environment NAME, --bundle-id ID
                           which customers, as of sign-transactions
    --transactions N       purchases of each customer, 1 to 100; default those of the receipt

  Requests to /control change how it answers; GET gives what it has counted:
    {"behaviour":NAME}     delay (ms), hang (ms), cut, cut_body, http_status (status), status
                           (status, is_retryable), not_json, empty, wrong_types, typed, huge (bytes),
                           slow_body (ms), api_error (code, retry_after); each with count, percent,
                           endpoint (production, sandbox, server_api)
    {"refund":TRANSACTION,"reason":"1","at_ms":N,"percentage":100000}, {"undo_refund":TRANSACTION}
    {"family_share":TRANSACTION}, {"second_device":TRANSACTION}
    {"renew":ORIGINAL,"count":N}, {"lapse":ORIGINAL,"cause":"billing"}
    {"renewals":false}, {"latest_holds_consumables":true}, {"notifications_url":URL}
    {"advance_ms":N}, {"reset":true}

  sign-receipts writes one receipt a line, different from each other:

    --customers N          how many customers, 1 to 5000000
    --seed S               which customers; the same give the same receipts at the same --at
    --receipts N           receipts of each customer; default 1
    --style STYLE          unified (default), transaction or mixed
    --environment NAME     production (default), sandbox or mixed
    --bundle-id ID         default com.example.game
    --at MS                when the receipts were made, in epoch milliseconds; default now
    --format FORMAT        base64 (default), or uploads: bodies of upload requests with country, user
                           and metadata that holds prices and "upload":"000000000000"
    -o FILE                default standard output

  sign-transactions writes signed transactions of the same customers, one list a line. It takes
  --customers, --seed, --environment, --bundle-id, --at and -o as above, and:

    --transactions N       transactions of each customer: the first in the receipt; 1 (default) to 100
    --format FORMAT        uploads (default): bodies of upload requests with country, user and
                           metadata; import: lines of an import file; jws: one transaction a line
    --fault NAME           one of the faults below, or wrong_app, or clock_skew (signed in an hour)

  sign-notifications writes what the App Store notifies of about them, one notification a line. It
  takes the same, without --transactions, and:

    --type TYPE            only this type: \(SignNotifications.types[..<3].joined(separator: ", ")),
                           \(SignNotifications.types[3..<7].joined(separator: ", ")),
                           \(SignNotifications.types[7...].joined(separator: ", "))
    --format FORMAT        bodies (default): requests of the App Store; import; jws

  sign-objects reads one JSON object a line from standard input and writes one signed object (JWS) a
  line, under the chain of DIR/signed-root.pem, signed-intermediate.pem and signed-leaf.pem:

    {"payload":VALUE}      the value's bytes are signed exactly as they stand
    {"payload_text":TEXT}  the same for text that is not JSON
    "fault":NAME           beside it: what is to be wrong with the object

  Faults: \(faults)

  notify posts the notifications of sign-notifications, in the order of the customers, and prints JSON
  counts. One that is not answered with 200 to 206 comes again 1, 12, 24, 48 and 72 hours after; in
  the Sandbox, and after a 400, it does not. It takes --customers, --seed, --environment, --bundle-id,
  --at and --type as above, and:

    --url URL              http://127.0.0.1:PORT/PATH
    --rate R               new notifications a second
    --duration S           new ones for so many seconds; default all
    --retry-scale F        the hours times F, 0 to 1; default 1
    --connections N        default 16
    --timeout-ms N         how long an answer may take; default 30000
    --log FILE             a line of JSON for each attempt: uuid, type, status, attempt, faults
    --duplicate P, --disorder P, --loss P, --delay P
                           so many of a hundred come twice, after younger ones, never, an hour late
    --wrong-app P, --expired-leaf P, --clock-skew P
                           so many are of an unknown app, under an expired certificate, signed in an
                           hour

  Exit codes: 0 done, 1 failed, 2 wrong usage.

  """

func run(_ arguments: [String]) throws {
  let options = arguments.dropFirst()
  switch arguments.first {
  case "sign-objects": try SignObjects.run(options)
  case "sign-transactions": try SignTransactions.run(options)
  case "sign-notifications": try SignNotifications.run(options)
  case "notify": try Notify.run(options)
  case "sign-receipts": try SignReceipts.run(options)
  default: try Serve.run(arguments)
  }
}

exit(Program.run("app-store-stand-in", help: help, run))
