// Finds identifiers that one ledger has erased and that merged events of other ledgers still hold.
import Base
package import Ledger

/// Where an identifier that was erased in one ledger stays in another.
package struct HeldIdentifier: Equatable, Sendable {
  /// The member that holds it.
  package let member: String
  /// The ledger that erased it.
  package let erasedIn: String
  /// The ledger that holds it, and the first of its events that do.
  package let heldBy: String
  package let position: Position
  package internal(set) var eventCount = 1
}

/// Collects identifiers of events that lose their data, then searches for them.
struct HeldIdentifierSearch {
  /// The members, and how each stands before its text, without its first quote.
  private static let keys = [
    "user_identifier", "appAccountToken", "app_account_token", "appTransactionId",
  ].map { (member: $0, bytes: Array("\($0)\":\"".utf8)) }

  /// The ledgers that erased each identifier, by its value.
  private var erased: [String: Set<String>] = [:]

  /// Notes what an event loses.
  mutating func note(_ data: [UInt8], _ kept: [UInt8], of origin: String) {
    var keptValues: Set<String> = []
    Self.forEachIdentifier(in: kept) { keptValues.insert($1) }
    Self.forEachIdentifier(in: data) { _, value in
      if !value.isEmpty, !keptValues.contains(value) {
        erased[value, default: []].insert(origin)
      }
    }
  }

  /// Searches the merged events of other ledgers than those that erased an identifier.
  func run(_ reader: LogReader, checkCancelled: () throws -> Void) throws -> [HeldIdentifier] {
    if erased.isEmpty { return [] }
    var found: [String: HeldIdentifier] = [:]
    try reader.read(from: 0, to: reader.head.size) { chunk in
      try checkCancelled()
      try chunk.forEachEvent { line in
        guard let (origin, position) = MergedEvent.source(of: line.data) else { return }
        var seen: Set<String> = []
        Self.forEachIdentifier(in: Array(line.data)) { member, value in
          guard let origins = erased[value] else { return }
          for erasing in origins where !origins.contains(origin) {
            let key = "\(member) \(erasing) \(origin)"
            guard seen.insert(key).inserted else { continue }
            if found[key] != nil {
              found[key]?.eventCount += 1
            } else {
              found[key] = HeldIdentifier(
                member: member, erasedIn: erasing, heldBy: origin, position: position)
            }
          }
        }
      }
      return true
    }
    return found.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Passes on the texts of identifying members, wherever they stand in an event.
  private static func forEachIdentifier(in data: [UInt8], _ body: (String, String) -> Void) {
    let mark = UInt8(ascii: "\"")
    data.withUnsafeBytes { bytes in
      var index = 0
      while let quote = bytes[index...].firstIndex(of: mark) {
        index = quote + 1
        guard let key = keys.first(where: { bytes[index...].starts(with: $0.bytes) }) else {
          continue
        }
        let start = index + key.bytes.count
        guard let end = bytes[start...].firstIndex(of: mark) else { return }
        body(key.member, String(decoding: bytes[start..<end], as: UTF8.self))
        index = end + 1
      }
    }
  }
}
