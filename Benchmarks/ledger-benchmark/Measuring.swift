// Time, options and output of the benchmarks.
import Glibc

/// Why a benchmark ended without a figure.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  /// A failed system call.
  static func system(_ operation: String, _ object: String) -> BenchmarkError {
    BenchmarkError("\(operation) \(object): \(String(cString: strerror(errno)))")
  }
}

/// Seconds of a clock that never goes back.
func now() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Options of the form `--name value`, each at most once.
struct Options {
  private var values: [String: String] = [:]

  init(_ arguments: some Sequence<String>, known: Set<String>) throws {
    var name: String?
    for argument in arguments {
      if let given = name {
        values[given] = argument
        name = nil
      } else if argument.hasPrefix("--"), known.contains(String(argument.dropFirst(2))) {
        name = String(argument.dropFirst(2))
      } else {
        throw BenchmarkError("\(argument): there is no such option")
      }
    }
    if let name { throw BenchmarkError("--\(name): a value is missing") }
  }

  func text(_ name: String) throws -> String {
    guard let value = values[name] else { throw BenchmarkError("--\(name) is missing") }
    return value
  }

  func number(_ name: String, default fallback: Int? = nil) throws -> Int {
    guard let text = values[name] else {
      if let fallback { return fallback }
      throw BenchmarkError("--\(name) is missing")
    }
    guard let value = Int(text), value >= 0 else {
      throw BenchmarkError("--\(name) \(text): not a number")
    }
    return value
  }
}

/// Writes one line: a JSON object of numbers.
func report(_ figures: KeyValuePairs<String, Double>) {
  print("{" + figures.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}")
}

/// Writes one line: a JSON object with a series for each name.
func report(_ series: KeyValuePairs<String, [Double]>) {
  let members = series.map { name, values in
    "\"\(name)\":[" + values.map { "\($0)" }.joined(separator: ",") + "]"
  }
  print("{" + members.joined(separator: ",") + "}")
}
