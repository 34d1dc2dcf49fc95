// The environment of a receipt that the App Store has not placed in one yet (rule R1, *pending*).
package import AppStore

/// What a receipt file says of its environment, and what it can't say.
package enum PendingEnvironment {
  /// That of a transaction receipt which names none that counts: only the App Store knows it.
  static let unknown: StaticString = "Unknown"

  /// What a file names, as the verification of its signature records it: a unified receipt's signed word; of a
  /// transaction receipt `Sandbox` alone, for the line that says so stands outside the signature, and nobody
  /// gains by calling a production receipt one of the sandbox.
  package static func named(in file: Receipt) -> String? {
    if file.style == .unified { return file.environment }
    return file.unsignedEnvironment == "Sandbox" ? "Sandbox" : nil
  }

  /// R1: `ProductionSandbox` is Sandbox; a transaction receipt that says Sandbox is Sandbox, and any other has the
  /// environment `Unknown`.
  static func environment(of file: Receipt) -> String {
    guard let named = named(in: file) else {
      return file.style == .transaction ? "\(unknown)" : "Production"
    }
    return named == "ProductionSandbox" ? "Sandbox" : named
  }

  /// SQL: a receipt's environment as text; where only the file can name it, what the file says. The query reads
  /// `receipts r LEFT JOIN pending_receipts q ON q.receipt = r.id`.
  static let ofReceiptSQL =
    "coalesce(nullif(\(storedSQL), 'Unknown'), q.environment, \(storedSQL))"

  private static let storedSQL = "(SELECT text FROM symbols WHERE id = r.environment)"
}
