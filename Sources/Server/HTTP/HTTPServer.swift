// The HTTP server: the client API on one address, metrics on another.
package import Base
import CMicroHTTPD
import Glibc
import Intake
import Ledger

/// Where a server listens, and what it takes at most.
package struct HTTPServerOptions: Sendable {
  package var listen = "127.0.0.1:8080"
  /// Nil for no metrics.
  package var metricsListen: String?
  /// Addresses and networks whose `X-Forwarded-For` is believed.
  package var trustedProxies: [String] = []
  /// Threads that read and write; the service has its own. One takes 10,000 uploads a second, and two that share a
  /// processor with the rest are slower than one.
  package var threadCount = max(1, min(4, processorCount / 4))
  /// The longest that such a thread waits. After exactly 128 events at once, the library waits for another before it
  /// handles them (libmicrohttpd 0.9.75, daemon.c); its own threads would wait for ever.
  package var waitMs: Int32 = 20
  package var connectionsMax = 4096
  package var bodyBytesMax = 4 << 20
  /// Of all bodies in memory together.
  package var bodiesBytesMax = 256 << 20
  /// The path of the App Store's notifications.
  package var notificationsPath = Configuration.Notifications().path
  /// Of all bodies of notifications in memory together, apart from the others.
  package var notificationBodiesBytesMax = 64 << 20
  /// Of all answers in memory together, from the moment that they are made until the system has taken their last byte.
  package var answersBytesMax = 256 << 20
  /// From a request's line to the end of its body.
  package var requestMs: Int64 = 20_000
  /// How long a connection may wait for its next request.
  package var idleMs: Int64 = 75_000
  /// How long a peer may take to accept a response, on top of the time that its size allows.
  package var answerMs: Int64 = 30_000
  /// How fast a peer must take a large answer.
  package var answerBytesEachSecond = 64 << 10
  /// How long it may take for one piece of a large answer, of 32 KiB.
  package var answerPieceMs: Int64 = 10_000

  package init() {}
}

/// Serves from its creation until `shutdown`. It ignores SIGPIPE in the whole process: a peer or a log
/// that goes away must be an error code, not the end.
package final class HTTPServer: Sendable {
  private let keeper: ConnectionReaper
  private let proxies: ProxyList
  private let client: Listener
  private let metrics: Listener?
  private let answers: ByteBudget
  private let notificationsPath: CurrentPath
  private let isShut = Monitor(false)
  /// That fewer connections are taken than wanted, and why; nil where they are not fewer.
  package let connectionsNote: String?

  private static let metricsConnectionsMax = 32

  /// Listens on every address or on none.
  package init(
    _ options: HTTPServerOptions, service: any ClientService, authenticator: TokenAuthenticator,
    metrics: Metrics, accessLog: AccessLog? = nil
  ) throws(Failure) {
    signal(SIGPIPE, SIG_IGN)
    let address = try Self.address(options.listen)
    let metricsAddress: ListenAddress? =
      if let text = options.metricsListen { try Self.address(text) } else { nil }
    proxies = ProxyList(try TrustedProxies(options.trustedProxies))
    let bodies = ByteBudget(limitBytes: options.bodiesBytesMax)
    answers = ByteBudget(limitBytes: options.answersBytesMax)
    let notificationBodies = ByteBudget(limitBytes: options.notificationBodiesBytesMax)
    notificationsPath = CurrentPath(options.notificationsPath)
    keeper = ConnectionReaper(budgets: [bodies, notificationBodies, answers])
    let parts = ListenerParts(
      options: options, proxies: proxies, service: service, authenticator: authenticator,
      metrics: metrics, accessLog: accessLog, keeper: keeper, bodies: bodies,
      notificationBodies: notificationBodies, answers: answers, notificationsPath: notificationsPath
    )
    let fitting = Self.fitting(connections: options.connectionsMax)
    connectionsNote = fitting.note
    client = try Listener(
      parts, on: address, servesMetrics: false, threadCount: options.threadCount,
      connectionsMax: fitting.connections)
    self.metrics =
      if let metricsAddress {
        try Listener(
          parts, on: metricsAddress, servesMetrics: true, threadCount: 1,
          connectionsMax: Self.metricsConnectionsMax)
      } else {
        nil
      }
    do throws(LedgerError) {
      try keeper.start()
    } catch {
      throw Failure(
        operation: "serve on", object: address.description, cause: String(describing: error))
    }
  }

  deinit { shutdown(graceMs: 0) }

  private static func address(_ text: String) throws(Failure) -> ListenAddress {
    guard let address = ListenAddress(text) else {
      throw Failure(
        operation: "listen on", object: PrintableText.shortened(text),
        cause: "it is not an address and a port, such as 127.0.0.1:8080 or [::1]:8080")
    }
    return address
  }

  /// Raises the process's limit of open files as far as the connections need it, and says how many
  /// connections it allows. The log must always be able to open its next file, and all tails of a burst.
  private static func fitting(connections wanted: Int) -> (connections: Int, note: String?) {
    func reserve(_ limit: Int) -> Int { 640 + 5 * OpenFileLimit.tailCountMax(limit: limit) }
    let needed = wanted + reserve(.max)
    OpenFileLimit.raise(to: needed)
    let limit = OpenFileLimit.current
    // With fewer files fewer tails wait, too.
    let fitting = max(1, limit - reserve(limit))
    if fitting >= wanted { return (wanted, nil) }
    return (
      fitting,
      "at most \(fitting) connections at once, not \(wanted): the limit of open files is "
        + "\(limit), and \(needed) are needed"
    )
  }

  /// Replaces the trusted proxies, for every request from now on.
  package func replaceTrustedProxies(_ texts: [String]) throws(Failure) {
    proxies.replace(try TrustedProxies(texts))
  }

  /// Replaces the path of notifications, for every request from now on.
  package func replaceNotificationsPath(_ path: String) { notificationsPath.replace(path) }

  /// The memory of answers that are on their way.
  package var answerBytes: Int { answers.usedBytes }

  /// The rounds of the threads that serve clients.
  var rounds: [StepCount] { client.rounds }

  /// Where the client API is served.
  package var port: UInt16 { client.port }
  /// Where the metrics are served; nil where they are not.
  package var metricsPort: UInt16? { metrics?.port }

  /// Takes no new connections, gives requests in progress this long to finish, and closes everything. What the
  /// service has not answered by then is answered 503. Returns when nothing of the server is left.
  package func shutdown(graceMs: Int64 = 10_000) {
    let isFirst = isShut.withLock { isShut in
      defer { isShut = true }
      return !isShut
    }
    guard isFirst else { return }
    let listeners = [client, metrics].compactMap(\.self)
    for listener in listeners { listener.drain() }
    keeper.drain()
    let deadlineMs = MonotonicClock.nowMs() + graceMs
    while client.hasConnections, MonotonicClock.nowMs() < deadlineMs { poll(nil, 0, 10) }
    client.abandonWork()
    // What was just abandoned gets a moment to be sent.
    let lastMs = MonotonicClock.nowMs() + min(graceMs, 1000)
    while client.hasWork, MonotonicClock.nowMs() < lastMs { poll(nil, 0, 10) }
    for listener in listeners { listener.stop() }
    keeper.finish()
  }
}

// MARK: - The library that serves HTTP

package enum HTTPServerLibrary {
  /// For example `libmicrohttpd 0.9.75`, as this system has it.
  package static var name: String {
    "libmicrohttpd "
      + (MHD_get_version().map { String(cString: $0) } ?? CryptoLibrary.unknownVersion)
  }
}
