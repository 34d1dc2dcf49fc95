// Command lines of the development programs: `--name value` pairs, and how a program begins and ends.
private import Glibc

package struct UsageError: Error {
  package let message: String

  package init(message: String) { self.message = message }
}

/// Why a program could not do what it was asked to.
package struct ProgramError: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }

  package init(_ operation: String, _ object: String, _ cause: String) {
    description = "\(operation) \(object): \(cause)"
  }

  package init(_ operation: String, _ object: String, code: Int32) {
    self.init(operation, object, String(cString: strerror(code)))
  }
}

/// Arguments by their names; unknown ones are refused.
package struct Arguments {
  private var values: [String: String] = [:]
  private var flags: Set<String> = []

  /// `valued` and `plain` name what may be given, each at most once.
  package init(
    _ arguments: some Sequence<String>, valued: Set<String>, plain: Set<String> = []
  ) throws(UsageError) {
    var rest = arguments.makeIterator()
    while let name = rest.next() {
      guard values[name] == nil, !flags.contains(name) else {
        throw UsageError(message: "\(name) is given twice")
      }
      if plain.contains(name) {
        flags.insert(name)
      } else if valued.contains(name) {
        guard let value = rest.next(), !value.isEmpty else {
          throw UsageError(message: "\(name) needs a value")
        }
        values[name] = value
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

  /// An integer in decimal digits, without a sign.
  package func integer<Number: FixedWidthInteger & Sendable>(
    _ name: String, _ range: ClosedRange<Number>
  ) throws(UsageError) -> Number? {
    guard let text = values[name] else { return nil }
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Number(text),
      range.contains(number)
    else {
      throw UsageError(
        message:
          "\(name) '\(text)' must be an integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  package func required<Number: FixedWidthInteger & Sendable>(
    _ name: String, _ range: ClosedRange<Number>
  ) throws(UsageError) -> Number {
    guard let number = try integer(name, range) else {
      throw UsageError(message: "\(name) is missing")
    }
    return number
  }

  package func choice(_ name: String, _ choices: [String]) throws(UsageError) -> String? {
    guard let text = values[name] else { return nil }
    guard choices.contains(text) else {
      throw UsageError(
        message: "\(name) '\(text)' must be one of \(choices.joined(separator: ", "))")
    }
    return text
  }
}

/// How a development program begins and ends.
package enum Program {
  /// Runs `body` with the arguments, or prints `help` on request; reports what is thrown.
  /// - Returns: the exit code: 0 done, 1 failed, 2 wrong usage.
  package static func run(
    _ name: String, help: @autoclosure () -> String, _ body: ([String]) throws -> Void
  ) -> Int32 {
    // A reader that has enough may leave: writing then fails with a cause instead of a signal.
    signal(SIGPIPE, SIG_IGN)
    let arguments = Array(CommandLine.arguments.dropFirst())
    do {
      if arguments.contains(where: { $0 == "--help" || $0 == "-h" }) {
        try StandardOutput.write(help())
      } else {
        try body(arguments)
      }
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

/// The signals that ask a program to end. They are blocked from here on: make it before any thread, so that only
/// the thread that waits gets them.
package struct TerminationSignals: Sendable {
  private let set: sigset_t

  package init() {
    var set = sigset_t()
    sigemptyset(&set)
    for number in [SIGTERM, SIGINT] { sigaddset(&set, number) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
    self.set = set
  }

  package func wait() {
    var (set, number) = (set, Int32(0))
    sigwait(&set, &number)
  }
}
