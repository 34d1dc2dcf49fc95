// A scan's output, read back, and the components in it.
import Base
import Foundation
import Ledger
import LedgerRules
import TestSupport
import Testing

/// The tables of a scan.
struct Scanned {
  struct Event: Equatable {
    let position: Int
    let recordedAtMs: Int64
    let component: Int64
    let line: String
  }

  struct Declaration: Equatable {
    let position: Int
    let recordedAtMs: Int64
    let line: String
  }

  struct Edge: Hashable {
    let component: Int64
    let node: Int64
  }

  var events: [Event] = []
  var edges: [Edge] = []
  var declarations: [Declaration] = []
  var summary = JSONValue.null

  func number(_ name: String) -> Int64? { summary[name]?.integerValue }
  func text(_ name: String) -> String? { summary[name]?.stringValue }
}

/// Runs a scan and reads what it wrote.
func scan(
  _ path: String, _ range: Range<Int>, before: Int64? = nil, keepsReceipts: Bool = false,
  waitingByteCount: Int = RangeScan.waitingByteCount
) throws -> Scanned {
  let file = try UnnamedFile()
  let directory = try LedgerDirectory.open(path: path)
  try RangeScan(
    directory, range, before: before, to: DescriptorOutput(file.descriptor),
    keepsReceipts: keepsReceipts, waitingByteCount: waitingByteCount
  ).run()
  let read = try ReadTables(plain: file)
  func rows(_ table: Int) -> [[String]] { read.rows[table] ?? [] }
  func number<Number: LosslessStringConvertible>(_ text: String) throws -> Number {
    try #require(Number(text))
  }
  return Scanned(
    events: try rows(RangeScan.eventsTable).map {
      Scanned.Event(
        position: try number($0[0]), recordedAtMs: try number($0[1]), component: try number($0[2]),
        line: $0[5])
    },
    edges: try rows(RangeScan.edgesTable).map {
      Scanned.Edge(component: try number($0[0]), node: try number($0[1]))
    },
    declarations: try rows(RangeScan.declarationsTable).map {
      Scanned.Declaration(
        position: try number($0[0]), recordedAtMs: try number($0[1]), line: $0[2])
    },
    summary: try JSONValue(Array(read.end.utf8)))
}

/// The components of several scans, by their edges alone: events of one component have the same number.
struct Components {
  private var numberOfLabel: [Int64: Int] = [:]
  private var parents: [Int] = []

  init(_ scans: [Scanned]) {
    var numberOfNode: [Int64: Int] = [:]
    for edge in scans.flatMap(\.edges) {
      let label = number(of: edge.component)
      if let other = numberOfNode[edge.node] {
        parents[root(label)] = root(other)
      } else {
        numberOfNode[edge.node] = label
      }
    }
    for event in scans.flatMap(\.events) { _ = number(of: event.component) }
  }

  private mutating func number(of label: Int64) -> Int {
    if let known = numberOfLabel[label] { return known }
    numberOfLabel[label] = parents.count
    parents.append(parents.count)
    return parents.count - 1
  }

  private func root(_ number: Int) -> Int {
    var number = number
    while parents[number] != number { number = parents[number] }
    return number
  }

  func component(of event: Scanned.Event) -> Int? { numberOfLabel[event.component].map(root) }

  var count: Int { Set(parents.indices.map(root)).count }
}

/// What an event names, found without the program's decoders.
func names(in line: String, ofLedger ledger: String) throws -> Set<String> {
  let event = try JSONValue(Array(line.utf8))
  var names: Set<String> = []
  guard let position = event["seq"]?.integerValue, let data = event["data"] else { return [] }
  func add(event position: Int64?) {
    if let position { names.insert("event \(ledger) \(position)") }
  }
  func addIDs(_ value: JSONValue) {
    switch value {
    case .array(let elements): elements.forEach(addIDs)
    case .object(let members):
      for member in members {
        if idNames.contains(member.key), let id = member.value.stringValue, !id.isEmpty, id != "0" {
          names.insert("id \(id)")
        } else {
          addIDs(member.value)
        }
      }
    default: break
    }
  }
  switch event["type"]?.stringValue {
  case "receipt.uploaded":
    add(event: position)
    names.insert("receipt \(data["receipt_id"]?.stringValue ?? "")")
  case "receipt.verified":
    add(event: position)
    add(event: data["upload"]?.integerValue)
    add(event: data["reply_of"]?.integerValue)
    if let reply = data["reply"] { addIDs(reply) }
  case "transactions.received", "transactions.fetched": addIDs(data)
  default: break
  }
  return names
}

private let idNames: Set<String> = [
  "transaction_id", "original_transaction_id", "web_order_line_item_id", "transactionId",
  "originalTransactionId", "webOrderLineItemId",
]

/// The exit code of an error.
func failure(_ body: () throws -> Void) -> Failure? {
  do {
    try body()
    return nil
  } catch { return Failure(error, command: "test") }
}

/// The plan of a ledger.
func plan(_ path: String, size: Int? = nil) throws -> JSONValue {
  try JSONValue(PlanCommand.plan(of: try LedgerDirectory.open(path: path), size: size))
}

extension JSONValue {
  /// The parts of a plan: their ranges.
  var ranges: [Range<Int>] {
    (self["parts"]?.arrayValue ?? []).map { part in
      Int(part["first"]?.integerValue ?? 0)..<Int(part["end"]?.integerValue ?? 0)
    }
  }
}
