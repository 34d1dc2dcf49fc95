// Shared by the client's tests: a client of a scripted server, and calls to it.
import AppStore
import Base
import Foundation
import HTTPClient
import TestSupport

extension VerifyReceiptOptions {
  /// Both endpoints on one server, with timeouts so long that only a case with its own meets them: a test may have to
  /// wait long for its turn.
  static func on(_ server: ScriptedServer) -> VerifyReceiptOptions {
    var options = VerifyReceiptOptions()
    options.productionURL = server.url("production")
    options.sandboxURL = server.url("sandbox")
    options.connectTimeoutMs = 600_000
    options.timeoutMs = 600_000
    return options
  }
}

extension VerifyReceiptClient {
  func ask(
    _ receiptText: String = "cmVjZWlwdA==", secret: String? = nil
  ) async -> VerifyReceiptResponse {
    await withCheckedContinuation { continuation in
      let request = VerifyReceiptRequest(
        receiptText: Array(receiptText.utf8), sharedSecret: secret.map { Array($0.utf8) })
      // A second completion would end the test run.
      verify(request) { continuation.resume(returning: $0) }
    }
  }

  /// Asks without giving up the thread. The few threads of the test run may come back to a test after minutes, and a
  /// connection is not kept that long.
  func askAndWait(_ receiptText: String = "cmVjZWlwdA==") -> VerifyReceiptResponse {
    let answer = Monitor<VerifyReceiptResponse?>(nil, conditionCount: 1)
    let request = VerifyReceiptRequest(
      receiptText: Array(receiptText.utf8), sharedSecret: nil)
    verify(request) { given in
      answer.withLock { $0 = given }
      answer.signal(0)
    }
    return answer.wait(on: 0) { $0 }
  }

  /// Asks this many times at once.
  func askMany(_ count: Int) async -> [VerifyReceiptResponse] {
    await withTaskGroup(of: VerifyReceiptResponse.self) { group in
      for _ in 0..<count { group.addTask { await self.ask() } }
      return await group.reduce(into: []) { $0.append($1) }
    }
  }
}

/// A response as a test writes it down.
enum Told: Equatable {
  case json(String)
  case other(String)
  case nothing(AppStoreFailure)

  init(_ content: VerifyReceiptResponse.Content) {
    switch content {
    case .json(let bytes): self = .json(String(decoding: bytes, as: UTF8.self))
    case .other(let bytes): self = .other(String(decoding: bytes, as: UTF8.self))
    case .none(let failure): self = .nothing(failure)
    }
  }
}

/// Waits for a change by other threads.
func eventually(_ condition: () -> Bool) async throws -> Bool {
  for _ in 0..<3_000 {
    if condition() { return true }
    try await Task.sleep(for: .milliseconds(10))
  }
  return condition()
}

/// Counts across threads.
final class Tally: Sendable {
  private let value = Monitor<[String: Int]>([:])

  func add(_ key: String) { value.withLock { $0[key, default: 0] += 1 } }
  subscript(_ key: String) -> Int { value.withLock { $0[key] ?? 0 } }
  var total: Int { value.withLock { $0.values.reduce(0, +) } }
}
