// The options of a command: `--name value` pairs and flags, each at most once.

/// Arguments that a command takes one by one; `finish` refuses the rest.
package struct RulesArguments {
  private var rest: [String]

  package init(_ arguments: [String]) { rest = arguments }

  /// The value of an option; nil if it is not given.
  package mutating func text(_ name: String) throws(RulesFailure) -> String? {
    guard let place = rest.firstIndex(of: name) else { return nil }
    guard place + 1 < rest.count, !rest[place + 1].isEmpty else {
      throw .usage(name, "needs a value")
    }
    let value = rest[place + 1]
    rest.removeSubrange(place...place + 1)
    if rest.contains(name) { throw .usage(name, "is given twice") }
    return value
  }

  package mutating func required(_ name: String) throws(RulesFailure) -> String {
    guard let value = try text(name) else { throw .usage(name, "is missing") }
    return value
  }

  package mutating func integer(
    _ name: String, _ range: ClosedRange<Int64>
  ) throws(RulesFailure) -> Int64? {
    guard let text = try text(name) else { return nil }
    guard let number = Int64(text), range.contains(number) else {
      throw .usage(name, "is no integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// Whether a flag is given.
  package mutating func flag(_ name: String) throws(RulesFailure) -> Bool {
    guard let place = rest.firstIndex(of: name) else { return false }
    rest.remove(at: place)
    if rest.contains(name) { throw .usage(name, "is given twice") }
    return true
  }

  /// Refuses what the command did not take.
  package func finish() throws(RulesFailure) {
    if let unknown = rest.first { throw .usage("'\(unknown)'", "is not an option of this command") }
  }
}
