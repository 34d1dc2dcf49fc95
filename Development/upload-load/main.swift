// A load generator for uploads: an open or a closed loop over keep-alive connections.
import Glibc
import ProgramSupport
import Synchronization

let help = """
  Usage: upload-load --url URL --bodies FILE (--rate N --duration S | --in-flight N) [options]

  Posts the bodies of FILE (one a line, in turn) to URL. The open loop (--rate) sends each upload at
  its time, whether answers come or not; latency counts from that time, so that a server that stalls
  cannot hide it. The closed loop (--in-flight) keeps so many under way, and latency counts from
  sending.

    --url URL              http://127.0.0.1:8080/client/itunes_connect/receipts (the default path), or
                           any other path, such as /client/app_store/transactions
    --bodies FILE          what `app-store-stand-in sign-receipts --format uploads` writes, or for
                           other paths `sign-transactions` or `sign-notifications`
    --token-file FILE      the token to send; default the variable UPLOAD_TOKEN
    --no-token             send none, as the App Store does with its notifications
    --rate N               uploads a second, 1 to 100000
    --duration S           for so many seconds; default 10
    --in-flight N          closed loop: so many at once, 1 to 4096
    --count N              at most so many uploads
    --connections N        of the open loop, 1 to 4096; default 256
    --random SEED          the bodies at random instead of in turn
    --unique               overwrite the digits of "upload":"000000000000" with the upload's number
    --reconnect            go on when connections break, and for 5 minutes when none can be made
    --answers FILE         write {"upload":N,"status":N,"receipt":ID} for each answer
    --drain-ms N           wait so long for the last answers; default 10000
    --json                 print JSON

  Exit codes: 0 done (whatever the answers were), 1 failed, 2 wrong usage.

  """

func token(_ arguments: Arguments) throws -> String? {
  if arguments.has("--no-token") {
    guard arguments.text("--token-file") == nil else {
      throw UsageError(message: "--token-file and --no-token exclude each other")
    }
    return nil
  }
  guard let path = arguments.text("--token-file") else {
    guard let value = getenv("UPLOAD_TOKEN") else {
      throw UsageError(message: "none of --token-file, --no-token and UPLOAD_TOKEN is given")
    }
    return String(cString: value)
  }
  var input = try LineInput(path: path)
  guard let line = try input.next() else { throw ProgramError("read", path, "holds no token") }
  return String(decoding: line.filter { $0 > 0x20 }, as: UTF8.self)
}

func plan(_ arguments: Arguments) throws(UsageError) -> LoadPlan {
  let rate = try arguments.integer("--rate", 1...100_000)
  let inFlight = try arguments.integer("--in-flight", 1...4_096)
  let seconds = try arguments.integer("--duration", 1...86_400) ?? 10
  let most = try arguments.integer("--count", 1...1_000_000_000)
  let connections = try arguments.integer("--connections", 1...4_096)
  var plan: LoadPlan
  switch (rate, inFlight) {
  case (let rate?, nil):
    let count = min(rate * seconds, most ?? .max)
    plan = LoadPlan(
      pace: .open(ratePerSecond: rate, count: count), connectionCount: connections ?? 256)
  case (nil, let inFlight?):
    guard connections == nil else {
      throw UsageError(
        message: "--in-flight has as many connections; --connections goes with --rate")
    }
    plan = LoadPlan(
      pace: .closed(durationNs: UInt64(seconds) * 1_000_000_000, count: most ?? .max),
      connectionCount: inFlight)
  default: throw UsageError(message: "one of --rate and --in-flight is needed")
  }
  plan.reconnects = arguments.has("--reconnect")
  if let ms = try arguments.integer("--drain-ms", UInt64(0)...600_000) {
    plan.drainNs = ms * 1_000_000
  }
  return plan
}

func run(_ given: [String]) throws {
  let arguments = try Arguments(
    given,
    valued: [
      "--url", "--bodies", "--token-file", "--rate", "--duration", "--in-flight", "--count",
      "--connections", "--answers", "--drain-ms", "--random",
    ], plain: ["--no-token", "--unique", "--reconnect", "--json"])
  let plan = try plan(arguments)
  let target = try Target(arguments.required("--url"))
  let requests = try RequestSet(
    path: arguments.required("--bodies"), target: target, token: token(arguments),
    seed: arguments.integer("--random", UInt64(0)...UInt64.max),
    isUnique: arguments.has("--unique"))
  var answers: ResponseFile?
  if let path = arguments.text("--answers") { answers = try ResponseFile(path: path) }
  for number in [SIGINT, SIGTERM] {
    signal(number) { _ in isInterrupted.store(true, ordering: .relaxed) }
  }
  let load = try LoadRun(plan: plan, requests: requests, target: target, answers: answers)
  // What was answered is on file, also where the run fails.
  let outcome = Result { try load.run() }
  try answers?.finish()
  let result = try outcome.get()
  let report = Report(result: result)
  try StandardOutput.write(arguments.has("--json") ? report.json : report.table)
}

exit(Program.run("upload-load", help: help, run))
