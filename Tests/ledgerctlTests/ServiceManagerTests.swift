// What `serve` tells a service manager.
import Base
import Foundation
import TestSupport
import Testing

/// The socket of a service manager, which a thread empties.
private final class NotifySocket: Sendable {
  private let descriptor: Int32
  private let received = Monitor<[String]>([])
  private let reader: WorkerThread

  /// - Parameters:
  ///   - name: a path, or `@` and the name of an abstract socket.
  ///   - onMessage: called with each message.
  init(_ name: String, onMessage: @escaping @Sendable (String) -> Void) throws {
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    self.descriptor = descriptor
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = name.utf8.map { $0 == UInt8(ascii: "@") ? 0 : $0 }
    try #require(bytes.count < MemoryLayout.size(ofValue: address.sun_path))
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let size = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) }
    }
    try #require(code == 0, "bind: errno \(errno)")
    reader = try WorkerThread { [received] in
      var buffer = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count <= 0 { return }
        let message = String(decoding: buffer[..<count], as: UTF8.self)
        received.withLock { $0.append(message) }
        onMessage(message)
      }
    }
  }

  /// All messages, once nothing sends any more.
  func finish() -> [String] {
    shutdown(descriptor, SocketConstant.shutdownBoth)
    reader.join()
    close(descriptor)
    return received.withLock { $0 }
  }
}

@Suite(.bounded) struct ServiceManagerTests {
  /// A ledger with a history and without projections.
  private static func sandbox() throws -> Sandbox {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      """
      ledgerctl init shop --origin example.com/shop && export LEDGER_DIR=shop && . "$SHOP" &&
      shop_history >shop.ndjson && ledgerctl app add --name Shop --bundle-id com.example.shop >id &&
      ledgerctl import shop.ndjson && rm -r shop/projections*
      """)
    try #require(made.exitCode == 0, "\(made.diagnostics)")
    return sandbox
  }

  /// Serves until a file is there, then ends the server.
  private static let serving = """
    ledgerctl serve --ledger shop --listen 127.0.0.1:0 2>err & server=$!
    until [ -e enough ] || ! kill -0 $server; do sleep 0.05; done; kill $server; wait $server
    """

  @Test(arguments: [true, false])
  func whatIsToldComesInOrder(isAbstract: Bool) throws {
    let sandbox = try Self.sandbox()
    let name = isAbstract ? "@receipt-ledger-\(UUID().uuidString)" : sandbox.path + "/notify"
    let path = sandbox.path
    let manager = try NotifySocket(name) { message in
      if message == "WATCHDOG=1" {
        _ = FileManager.default.createFile(atPath: path + "/enough", contents: nil)
      }
    }
    let outcome = try sandbox.run(
      "export NOTIFY_SOCKET='\(name)' WATCHDOG_USEC=400000\n" + Self.serving)
    var messages = manager.finish()
    expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
    let log = try String(contentsOfFile: path + "/err", encoding: .utf8)
    let listening = try #require(log.split(separator: "\n").first?.split(separator: " ").last)
    // How many heartbeats there are depends on the machine.
    let heartbeats = messages.filter { $0 == "WATCHDOG=1" }.count
    #expect(heartbeats >= 1)
    messages.removeAll { $0 == "WATCHDOG=1" }
    expectEqual(
      messages,
      [
        "STATUS=Opening the ledger", "STATUS=Projecting: 21 of 21 events",
        "READY=1\nSTATUS=Listening on \(listening)", "STOPPING=1\nSTATUS=Stopping",
      ])
    expectEqual(log, "ledgerctl: serve: listening on \(listening)\nledgerctl: serve: stopping\n")
  }

  @Test func noHeartbeatIsSentForAnotherProcessOrWithoutALimit() throws {
    for variables in ["WATCHDOG_USEC=200000 WATCHDOG_PID=1", "A=1", "WATCHDOG_USEC=soon"] {
      let sandbox = try Self.sandbox()
      let path = sandbox.path
      let manager = try NotifySocket(path + "/notify") { message in
        guard message.hasPrefix("READY=1") else { return }
        usleep(500_000)
        _ = FileManager.default.createFile(atPath: path + "/enough", contents: nil)
      }
      let outcome = try sandbox.run(
        "export NOTIFY_SOCKET='\(path)/notify' \(variables)\n" + Self.serving)
      expectEqual(outcome.exitCode, 0)
      #expect(!manager.finish().contains("WATCHDOG=1"), "\(variables)")
    }
  }

  @Test(arguments: ["/none/notify", "relative", String(repeating: "/long", count: 30)])
  func serverRunsWithoutAManagerThatHears(name: String) throws {
    let sandbox = try Self.sandbox()
    let outcome = try sandbox.run(
      """
      export NOTIFY_SOCKET='\(name)'
      ledgerctl serve --ledger shop --listen 127.0.0.1:0 2>err & server=$!
      until grep -q listening err || ! kill -0 $server; do sleep 0.05; done; kill $server; wait $server
      grep -c "the service manager can't be notified: " err
      """)
    expectEqual(outcome.output, "1\n")
    expectEqual(outcome.exitCode, 0)
  }
}
