// The task of a fold: the ledgers, the declarations, and the reports to write.
import AppStore
package import Base
import Ledger
package import Projections

/// The content of the file given by `--task`. Each member must be present, and no other.
package struct FoldTask {
  package struct Ledger {
    let origin: String
    package let name: String
  }

  /// In the order of their origins; rows name a ledger by its index.
  package let ledgers: [Ledger]
  /// A file with the declarations of all ledgers, line by line.
  package let declarationsPath: String
  /// When the last event was recorded, in epoch milliseconds; of several ledgers, the last event that is no
  /// declaration. Nil if there is none.
  package let momentMs: Int64?
  package private(set) var reports: [ReportRequest]

  private static let byteCountMax = 16 << 20
  /// A ledger's index has 16 bits.
  private static let ledgerCountMax = 1 << 16
  private static let reportCountMax = 256

  package init(readingFrom path: String) throws(Failure) {
    let bytes: [UInt8]
    do throws(SmallFileError) {
      bytes = try SmallFile.read(path, byteCountMax: Self.byteCountMax)
    } catch { throw Failure(operation: "read", object: path, cause: error.cause) }
    do throws(TaskError) { try self.init(bytes) } catch {
      throw Failure(.usage, operation: "read", object: path, cause: error.cause)
    }
  }

  package init(_ bytes: [UInt8]) throws(TaskError) {
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(bytes) } catch {
      throw TaskError("invalid JSON: \(error)")
    }
    try value.requireMembers(["ledgers", "declarations", "moment_ms", "reports"], of: "the task")
    ledgers = try Self.ledgers(value["ledgers"])
    guard let path = value["declarations"]?.stringValue, !path.isEmpty else {
      throw TaskError("'declarations' is not a path")
    }
    declarationsPath = path
    switch value["moment_ms"] {
    case .null: momentMs = nil
    case let moment:
      guard let moment = moment?.integerValue else {
        throw TaskError("'moment_ms' is neither an integer nor null")
      }
      momentMs = moment
    }
    guard let list = value["reports"]?.arrayValue, 1...Self.reportCountMax ~= list.count else {
      throw TaskError("'reports' must be a list of 1 to \(Self.reportCountMax) reports")
    }
    var reports: [ReportRequest] = []
    for item in list {
      reports.append(try Self.report(item))
    }
    self.reports = reports
  }

  private static func ledgers(_ value: JSONValue?) throws(TaskError) -> [Ledger] {
    guard let list = value?.arrayValue, 1...ledgerCountMax ~= list.count else {
      throw TaskError("'ledgers' must be a list of 1 to \(ledgerCountMax) ledgers")
    }
    var ledgers: [Ledger] = []
    for item in list {
      try item.requireMembers(["origin", "name"], of: "a ledger")
      guard let origin = item["origin"]?.stringValue, !origin.isEmpty,
        let name = item["name"]?.stringValue, !name.isEmpty
      else { throw TaskError("a ledger has no origin or no name") }
      if let last = ledgers.last, !last.origin.utf8.lexicographicallyPrecedes(origin.utf8) {
        throw TaskError(
          last.origin == origin
            ? "two ledgers have the origin '\(origin)'" : "the ledgers are not sorted by origin")
      }
      ledgers.append(Ledger(origin: origin, name: name))
    }
    if let name = ledgers.map(\.name).firstRepeated {
      throw TaskError("two ledgers have the name '\(name)'")
    }
    return ledgers
  }

  /// The task whose reports are as of its moment, or of the last declaration if that is later.
  func asOf(declaredMs: Int64?) -> FoldTask {
    var task = self
    guard let latestMs = [momentMs, declaredMs].compactMap(\.self).max() else { return task }
    for index in reports.indices where reports[index].kind.hasMoment {
      task.reports[index].momentMs = reports[index].momentMs ?? latestMs
    }
    return task
  }

  private static func report(_ value: JSONValue) throws(TaskError) -> ReportRequest {
    try value.requireMembers(["kind", "filters"], of: "a report")
    let word = value["kind"]?.stringValue ?? ""
    guard let kind = ReportKind(rawValue: word) else {
      throw TaskError("'\(word)' is not a kind of report")
    }
    guard let filters = value["filters"] else { throw TaskError("a report has no filters") }
    var request: ReportRequest
    do throws(TaskError) {
      try PartitionFilters.check(filters, of: kind)
      do throws(ProjectionError) { request = try ReportRequest(kind, filters: filters) } catch {
        throw TaskError("\(error)")
      }
      try PartitionFilters.check(request)
    } catch { throw TaskError("the report '\(word)': \(error.cause)") }
    return request
  }
}

/// What is wrong with a task.
package struct TaskError: Error, Equatable {
  let cause: String

  init(_ cause: String) { self.cause = cause }
}

extension JSONValue {
  /// Throws unless this is an object with exactly these members, each once.
  fileprivate func requireMembers(_ names: [String], of what: String) throws(TaskError) {
    guard case .object(let members) = self else { throw TaskError("\(what) is not a JSON object") }
    let keys = members.map(\.key)
    if let unknown = keys.first(where: { !names.contains($0) }) {
      throw TaskError("\(what) has the unknown member '\(unknown)'")
    }
    if let key = keys.firstRepeated { throw TaskError("\(what) has the member '\(key)' twice") }
    if let missing = names.first(where: { !keys.contains($0) }) {
      throw TaskError("\(what) lacks the member '\(missing)'")
    }
  }
}

extension [String] {
  /// The first text that occurs earlier in the list.
  var firstRepeated: String? {
    var seen: Set<String> = []
    return first { !seen.insert($0).inserted }
  }
}

// MARK: - Errors

extension Failure {
  /// - Parameter events: used to name an event by its ledger and position.
  init(folding error: any Error, _ events: PartitionEvents) {
    switch error {
    case let error as Failure: self = error
    case let error as LedgerError: self.init(error)
    case let error as StreamError:
      self.init(error, operation: "write", object: "standard output")
    case let error as DatabaseError:
      self.init(operation: "fold", object: "temporary database", cause: error.description)
    case ProjectionError.ledger(let error): self.init(error)
    case ProjectionError.database(let error):
      self.init(operation: "fold", object: "temporary database", cause: error.description)
    case ProjectionError.output(let error): self.init(folding: error, events)
    case ProjectionError.event(let position, let error):
      self.init(
        error.isOfLaterProgram ? .newerFormat : .failed, operation: "fold",
        object: "event \(events.text(of: position))", cause: error.description)
    case ProjectionError.usage(let cause):
      self.init(.usage, operation: "write", object: "report", cause: cause)
    case let error as ProjectionError:
      self.init(operation: "fold", object: "events", cause: error.description)
    default: self.init(error, command: "fold")
    }
  }
}
