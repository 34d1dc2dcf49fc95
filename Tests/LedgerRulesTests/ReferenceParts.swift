// Components of a test history, found by reading the events as texts, and rows merged in the plainest way.
import AppStore
import Base
import Foundation
import LedgerRules
import Projections
import TestSupport
import Testing

extension [PlacedEvent] {
  /// Events that share a receipt or a transaction, or name each other, have the same number.
  func componentNumbers() throws -> [Int] {
    var parents = Array<Int>(indices)
    func root(_ number: Int) -> Int {
      var number = number
      while parents[number] != number { number = parents[number] }
      return number
    }
    var owners: [String: Int] = [:]
    for (number, event) in enumerated() {
      for node in event.nodes {
        parents[root(number)] = root(owners[node] ?? number)
        owners[node] = number
      }
    }
    return indices.map { root($0) }
  }
}

extension PlacedEvent {
  private static let idKeys = [
    "transaction_id", "original_transaction_id", "web_order_line_item_id", "transactionId",
    "originalTransactionId", "webOrderLineItemId",
  ]

  /// The texts that events of one component share.
  fileprivate var nodes: [String] {
    var nodes = ["e:\(ledger):\(position)"]
    nodes += named.map { "e:\(ledger):\($0)" }
    nodes += values(#""receipt_id":"([^"]+)""#).map { "r:\($0)" }
    var texts = [line]
    for token in values(#""signed(?:Transaction|Renewal)Info":"([^"]+)""#) {
      let payload = Array(token.split(separator: ".")[1].utf8)
      texts.append(String(decoding: (try? Base64.decode(payload, .url)) ?? [], as: UTF8.self))
    }
    for text in texts {
      for key in Self.idKeys {
        let ids = Self.values(#""\#(key)":"([^"]+)""#, in: text)
        // A line item of 0 does not count.
        nodes += ids.filter { $0 != "0" }.map { "t:\($0)" }
      }
    }
    for receipt in values(#""receipt":"([^"]+)""#) {
      guard let content = try? Base64.decode(Array(receipt.utf8)),
        let file = try? ReceiptFile.decode(content)
      else { continue }
      for purchase in file.purchases {
        let ids = [
          purchase.transactionID, purchase.originalTransactionID, purchase.webOrderLineItemID,
        ]
        nodes += ids.compactMap { $0.map { "t:\($0)" } }
      }
    }
    return nodes
  }

  private func values(_ pattern: String) -> [String] { Self.values(pattern, in: line) }

  private static func values(_ pattern: String, in text: String) -> [String] {
    guard let expression = try? NSRegularExpression(pattern: pattern) else { return [] }
    let whole = NSRange(text.startIndex..., in: text)
    return expression.matches(in: text, range: whole).compactMap {
      Range($0.range(at: 1), in: text).map { String(text[$0]) }
    }
  }
}

extension PlacedEvent {
  /// The positions that the event names.
  var named: [Int] {
    ["upload", "reply_of"].flatMap { values(#""\#($0)":([0-9]+)"#).compactMap { Int($0) } }
  }
}

// MARK: Merging

extension FoldedTable {
  /// The rows of several partitions as if they were of one, sorted.
  static func merged(_ tables: [FoldedTable]) throws -> [[String]] {
    let first = try #require(tables.first)
    let rows = tables.flatMap(\.rows)
    return switch first.kind {
    case .exceptions: try first.exceptions(rows).sorted { $0.lexicographicallyPrecedes($1) }
    case .revenue, .users: try first.sums(rows).sorted { $0.lexicographicallyPrecedes($1) }
    default: rows.sorted { $0.lexicographicallyPrecedes($1) }
    }
  }

  /// Keeps the first of equal exceptions.
  private func exceptions(_ rows: [[String]]) throws -> [[String]] {
    let passedOver = try Set(
      ["recorded_at", "position", "date", "country_code", "user_identifier"].map { try column($0) })
    let time = try column("recorded_at")
    let place = try column("position")
    func order(_ row: [String]) -> [Int] {
      [Int(row[time]) ?? 0] + row[place].split(separator: ":").map { Int($0) ?? 0 }
    }
    var firsts: [[String]: [String]] = [:]
    var result: [[String]] = []
    for row in rows {
      guard row[0] == "distinct" else {
        result.append(row)
        continue
      }
      let key = row.indices.filter { !passedOver.contains($0) }.map { row[$0] }
      if let known = firsts[key], order(known).lexicographicallyPrecedes(order(row)) { continue }
      firsts[key] = row
    }
    return result + firsts.values
  }

  /// Adds up the rows of one user, or of the same dimensions and currency.
  private func sums(_ rows: [[String]]) throws -> [[String]] {
    let currency = columns.firstIndex { $0.name == "currency" }
    var sums: [[String]: [String]] = [:]
    for row in rows {
      let key = Array(row[...(currency ?? 0)])
      guard let known = sums[key] else {
        sums[key] = row
        continue
      }
      sums[key] = try columns.indices.map { place in
        place < key.count ? known[place] : try sum(known[place], row[place], columns[place])
      }
    }
    return Array(sums.values)
  }

  private func sum(_ one: String, _ other: String, _ column: PartitionColumn) throws -> String {
    if one.isEmpty || other.isEmpty { return one + other }
    switch column.content {
    case .integer, .amount:
      return "\(try #require(Int128(one)) + #require(Int128(other)))"
    case .time:
      let times = [try #require(Int64(one)), try #require(Int64(other))]
      return "\(try #require(column.name == "first_seen_at" ? times.min() : times.max()))"
    case .list:
      let texts = try Set([one, other].flatMap { try strings($0) }).sorted {
        $0.utf8.lexicographicallyPrecedes($1.utf8)
      }
      return JSONText.array(texts.map { JSONText(stringLiteral: $0) }).text
    case .amounts:
      var sums: [String: Int128] = [:]
      for text in [one, other] {
        for (code, micros) in try object(text) {
          sums[code, default: 0] += try #require(Int128(micros))
        }
      }
      return JSONText.object(
        sums.sorted { $0.key < $1.key }.map { ($0.key, JSONText(stringLiteral: "\($0.value)")) }
      ).text
    default: throw SumError()
    }
  }

  private struct SumError: Error {}

  private func strings(_ text: String) throws -> [String] {
    try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String])
  }

  private func object(_ text: String) throws -> [String: String] {
    try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: String])
  }
}
