// The command line: what it takes, and what is wrong with one.
import AppStoreAuthority
import Base
import ProgramSupport

struct Options: Sendable {
  var uploadCount = 0
  var seed: UInt64 = 0
  var from = "2025-01-01"
  var to = "2026-06-30"
  var outputPath: String?
  var pricesPath: String?
  var ratesPath: String?
  /// Of the events.
  var signedPercent: Int?
  var authorityPath: String?
  var isSmall = false
  var wantsHelp = false

  static let help = """
    Usage: generate-history --uploads N --seed S [options]

    Writes a history of invented App Store uploads as an import file: one JSON object a line.
    The same options give the same bytes on every machine, but for signed transactions: their
    signatures differ each time.

      --uploads N     how many uploads, 1 to 5000000
      --seed S        which history, 0 to 18446744073709551615
      --from DATE     first day (UTC) of the uploads; default 2025-01-01
      --to DATE       last day (UTC) of the uploads; default 2026-06-30
      -o FILE         where the history goes; default standard output
      --prices FILE   write a price list (CSV) that fits the history
      --rates FILE    write daily exchange rates (CSV) that cover it
      --signed-percent P
                      uploads and notifications with signed transactions in place of some
                      receipts: about P of a hundred events, 1 to 100
      --authority DIR whose chain signs them: as of app-store-stand-in
      --small         short histories, small certificates, no latest_receipt: lines
                      of about 5 KB
      --help          show this text

    Exit codes: 0 done, 1 failed, 2 wrong usage.

    """

  /// Reads the arguments that follow the program's name.
  init(_ arguments: [String]) throws(UsageError) {
    var seen: Set<String> = []
    var index = 0
    while index < arguments.count {
      let name = arguments[index]
      index += 1
      guard seen.insert(name).inserted else {
        throw UsageError(message: "\(name) is given twice")
      }
      switch name {
      case "--help", "-h":
        wantsHelp = true
        return
      case "--small": isSmall = true
      case "--uploads", "--seed", "--from", "--to", "-o", "--prices", "--rates",
        "--signed-percent", "--authority":
        guard index < arguments.count, !arguments[index].isEmpty else {
          throw UsageError(message: "\(name) needs a value")
        }
        try take(name, arguments[index])
        index += 1
      default: throw UsageError(message: "unknown argument '\(name)'")
      }
    }
    for name in ["--uploads", "--seed"] where !seen.contains(name) {
      throw UsageError(message: "\(name) is missing")
    }
    try checkTogether()
  }

  private mutating func take(_ name: String, _ value: String) throws(UsageError) {
    switch name {
    case "--uploads":
      guard let count = Self.decimal(value), (1...5_000_000).contains(count) else {
        throw UsageError(message: "--uploads '\(value)' is no integer from 1 to 5000000")
      }
      uploadCount = Int(count)
    case "--seed":
      guard let number = Self.decimal(value) else {
        throw UsageError(
          message: "--seed '\(value)' is no integer from 0 to 18446744073709551615")
      }
      seed = number
    case "--from": from = value
    case "--to": to = value
    case "-o": outputPath = value
    case "--signed-percent":
      guard let percent = Self.decimal(value), (1...100).contains(percent) else {
        throw UsageError(message: "--signed-percent '\(value)' is no integer from 1 to 100")
      }
      signedPercent = Int(percent)
    case "--authority": authorityPath = value
    case "--prices": pricesPath = value
    default: ratesPath = value
    }
  }

  private static func decimal(_ text: String) -> UInt64? {
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return UInt64(text)
  }

  private func checkTogether() throws(UsageError) {
    let simulation = try makeSimulation()
    guard simulation.fromMs < simulation.toMs else {
      throw UsageError(message: "--from \(from) lies after --to \(to)")
    }
    guard simulation.toMs - simulation.fromMs <= 3660 * dayMs else {
      throw UsageError(message: "--from \(from) and --to \(to) lie more than ten years apart")
    }
    guard (signedPercent == nil) == (authorityPath == nil) else {
      throw UsageError(message: "--signed-percent and --authority go together")
    }
    let paths = [outputPath, pricesPath, ratesPath].compactMap(\.self)
    guard Set(paths).count == paths.count else {
      throw UsageError(message: "two outputs have the same file")
    }
  }

  func makeSimulation() throws(UsageError) -> Simulation {
    Simulation(
      seed: seed, fromMs: try Self.midnightMs("--from", from),
      toMs: try Self.midnightMs("--to", to) + dayMs, isSmall: isSmall)
  }

  private static func midnightMs(_ name: String, _ value: String) throws(UsageError) -> Int64 {
    guard let date = try? CivilDate(parsing: value), (2009...2099).contains(date.year) else {
      throw UsageError(message: "\(name) '\(value)' is no date (YYYY-MM-DD) of 2009 to 2099")
    }
    return Int64(date.dayNumber) * dayMs
  }
}
