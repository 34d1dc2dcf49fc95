// Command lines of the development programs: `--name value` pairs, and what goes wrong.
private import Glibc

package struct UsageError: Error {
  package let message: String

  package init(message: String) { self.message = message }
}

/// Arguments by their names; what nobody asked for is refused at the end.
package struct Arguments {
  private var values: [String: String] = [:]
  private var flags: Set<String> = []

  /// `valued` and `plain` name what may be given, each at most once.
  package init(_ arguments: [String], valued: Set<String>, plain: Set<String>) throws(UsageError) {
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

  package func has(_ name: String) -> Bool { flags.contains(name) }

  package func text(_ name: String) -> String? { values[name] }

  package func required(_ name: String) throws(UsageError) -> String {
    guard let value = values[name] else { throw UsageError(message: "\(name) is missing") }
    return value
  }

  package func integer(_ name: String, _ range: ClosedRange<Int64>) throws(UsageError) -> Int64? {
    guard let text = values[name] else { return nil }
    guard let number = Int64(text), range.contains(number) else {
      throw UsageError(
        message: "\(name) '\(text)' is no integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  package func choice(_ name: String, _ choices: [String]) throws(UsageError) -> String? {
    guard let text = values[name] else { return nil }
    guard choices.contains(text) else {
      throw UsageError(message: "\(name) '\(text)' is none of \(choices.joined(separator: ", "))")
    }
    return text
  }
}

/// How a development program begins and ends.
package enum Program {
  /// Runs `body`, reports what it throws, and gives the exit code: 0 done, 1 failed, 2 wrong usage.
  package static func run(_ name: String, _ body: () throws -> Void) -> Int32 {
    // A reader that has enough may leave: writing then fails with a cause instead of a signal.
    signal(SIGPIPE, SIG_IGN)
    do {
      try body()
      return 0
    } catch let error as UsageError {
      report(name, "\(error.message)\nTry '\(name) --help'.")
      return 2
    } catch let error as OutputError {
      if error.isClosedPipe { return 0 }
      report(name, error.message)
      return 1
    } catch {
      report(name, "\(error)")
      return 1
    }
  }

  private static func report(_ name: String, _ message: String) {
    let line = Array("\(name): \(message)\n".utf8)
    _ = line.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
  }
}
