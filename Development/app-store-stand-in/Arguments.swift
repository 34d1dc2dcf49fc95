// Reads `--name value` pairs.

struct UsageError: Error {
  let message: String
}

/// Arguments by their names; what nobody asked for is refused at the end.
struct Arguments {
  private var values: [String: String] = [:]
  private var flags: Set<String> = []

  /// `valued` and `plain` name what may be given, each at most once.
  init(_ arguments: [String], valued: Set<String>, plain: Set<String>) throws(UsageError) {
    var index = 0
    while index < arguments.count {
      let name = arguments[index]
      index += 1
      guard values[name] == nil, !flags.contains(name) else {
        throw UsageError(message: "\(name) is given twice")
      }
      if plain.contains(name) {
        flags.insert(name)
      } else if valued.contains(name) {
        guard index < arguments.count, !arguments[index].isEmpty else {
          throw UsageError(message: "\(name) needs a value")
        }
        values[name] = arguments[index]
        index += 1
      } else {
        throw UsageError(message: "unknown argument '\(name)'")
      }
    }
  }

  func has(_ name: String) -> Bool { flags.contains(name) }

  func text(_ name: String) -> String? { values[name] }

  func required(_ name: String) throws(UsageError) -> String {
    guard let value = values[name] else { throw UsageError(message: "\(name) is missing") }
    return value
  }

  func integer(_ name: String, _ range: ClosedRange<Int64>) throws(UsageError) -> Int64? {
    guard let text = values[name] else { return nil }
    guard let number = Int64(text), range.contains(number) else {
      throw UsageError(
        message: "\(name) '\(text)' is no integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  func choice(_ name: String, _ choices: [String]) throws(UsageError) -> String? {
    guard let text = values[name] else { return nil }
    guard choices.contains(text) else {
      throw UsageError(message: "\(name) '\(text)' is none of \(choices.joined(separator: ", "))")
    }
    return text
  }
}
