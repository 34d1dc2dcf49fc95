// `serve`: runs the server.
import Base
import Glibc
import Intake
import Ledger
import Projections
import Server

let serveCommand = Command(
  "serve", summary: "Run the server: the client API over HTTP, and verification",
  details: [
    "Accepts uploads, checks their signatures, asks the App Store, and responds (docs/client-api.md). "
      + "Pending receipts are retried until the App Store gives a final reply.",
    "While it runs, other commands append through it. It reads config.json again when the file changes. "
      + "SIGTERM, SIGINT and SIGHUP end it after the requests under way are answered. If it can no longer "
      + "append, it ends with exit code 1, so that its supervisor restarts it.",
  ],
  options: [
    Option(
      "listen", value: .init("ADDRESS", standard: "127.0.0.1:8080"),
      help: "address and port of the client API; port 0 selects a free port"),
    Option(
      "metrics-listen", value: .init("ADDRESS"),
      help: "address and port of the Prometheus metrics (default: no metrics)"),
    Option(
      "access-log", value: .init("FILE"),
      help: "append a JSON line for each request to FILE; `-` is standard output"),
  ],
  examples: [
    Example(
      "ledgerctl serve --listen [::1]:8080 --metrics-listen 127.0.0.1:9090 --access-log -",
      "Serve with metrics and an access log")
  ]
) { invocation, context in
  try serve(ServeOptions(invocation), invocation, context)
}

/// The options of `serve`.
struct ServeOptions: Equatable, Sendable {
  let listen: String
  let metricsListen: String?
  /// A path, or `-`.
  let accessLog: String?

  init(_ invocation: Invocation) throws(UsageError) {
    let cause = "is not an address and a port, such as 127.0.0.1:8080 or [::1]:8080"
    func address(_ name: String) throws(UsageError) -> String? {
      try invocation.value(name, cause) { ListenAddress($0) == nil ? nil : $0 }
    }
    listen = try address("listen") ?? ""
    metricsListen = try address("metrics-listen")
    accessLog = invocation.value("access-log")
  }
}

private func serve(
  _ options: ServeOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let directory = try context.openLedger(invocation)
  let progress = Progress("Projecting", unit: .count("events"), context: context)
  let diagnostics = context.diagnostics
  let interruption = context.interruption
  let isServing = StopFlag()
  let manager = ServiceManager { diagnostics.writeLine("ledgerctl: serve: \($0)", .warning) }
  manager?.report("Opening the ledger")
  var serverOptions = LedgerServerOptions()
  serverOptions.listen = options.listen
  serverOptions.metricsListen = options.metricsListen
  serverOptions.projections = .ofProgram
  serverOptions.log = { diagnostics.writeLine(visible("ledgerctl: serve: \($1)"), $0) }
  if let path = options.accessLog {
    serverOptions.accessLogDescriptor = try openLog(path, outside: directory)
  }
  let server = try LedgerServer(
    directory, options: serverOptions,
    observer: Projector.Observer(
      progress: {
        progress.update($0.foldedEvents, of: $0.totalEvents)
        if isServing.isSet { return }
        manager?.reportProgress("Projecting: \($0.foldedEvents) of \($0.totalEvents) events")
      },
      notice: { notice in
        progress.erase()
        diagnostics.writeLine("ledgerctl: serve: \(notice)", .warning)
      },
      waiting: {
        progress.draw("Waiting for another rebuild")
        manager?.reportProgress("Waiting for another rebuild")
      },
      // While serving, a request to stop must not interrupt the fold that responses need.
      isCancelled: { interruption.isRequested && !isServing.isSet }))
  isServing.set()
  progress.erase()
  let listening = listeningText(server, options)
  diagnostics.writeLine("ledgerctl: serve: \(listening)")
  manager?.reportReady(listening.prefix(1).uppercased() + listening.dropFirst())
  let hasFailed = waitForEnd(of: server, interruption, manager)
  manager?.reportStopping()
  if !hasFailed { diagnostics.writeLine("ledgerctl: serve: stopping") }
  try server.stop()
  if hasFailed {
    throw Failure(
      operation: "serve", object: directory.path, cause: "no more events can be appended")
  }
  return .done
}

/// Waits until a signal arrives or appends are impossible, and meanwhile tells the service manager that the server is
/// alive; returns whether appends are impossible.
private func waitForEnd(
  of server: LedgerServer, _ interruption: Interruption, _ manager: ServiceManager?
) -> Bool {
  var heartbeat = ServiceManager.watchdogMs.map {
    Heartbeat(
      limitMs: $0, patienceMs: server.probePatienceMs, nowMs: MonotonicClock.nowMs())
  }
  while !interruption.isRequested {
    if server.waitForFailure(limitMs: 100) { return true }
    let isDue = heartbeat?.isDue(nowMs: MonotonicClock.nowMs()) { server.beginProbe() }
    if isDue == true { manager?.reportAlive() }
  }
  return false
}

/// `listening on http://127.0.0.1:8080, metrics on http://127.0.0.1:9090/metrics`
private func listeningText(_ server: LedgerServer, _ options: ServeOptions) -> String {
  func url(_ address: String, _ port: UInt16) -> String {
    "http://\(address.prefix(upTo: address.lastIndex(of: ":") ?? address.endIndex)):\(port)"
  }
  var text = "listening on \(url(options.listen, server.port))"
  if let address = options.metricsListen, let port = server.metricsPort {
    text += ", metrics on \(url(address, port))/metrics"
  }
  return text
}

private func openLog(_ path: String, outside ledger: LedgerDirectory) throws -> Int32 {
  if path == "-" { return STDOUT_FILENO }
  let file = resolvedPath(path)
  let folder = file.lastIndex(of: "/").map { String(file[...$0]) } ?? "."
  if try isInsideLedger(folder, ledger) {
    throw Failure(
      operation: "open", object: path,
      cause: "it is inside a ledger's directory, which may contain only the ledger's own files")
  }
  let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
  if descriptor < 0 { throw Failure(operation: "open", object: path, systemError: errno) }
  return descriptor
}
