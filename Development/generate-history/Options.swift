// The command line: what it takes, and what is wrong with one.
import AppStoreAuthority
import Base
import ProgramSupport

struct Options: Sendable {
  let uploadCount: Int
  let simulation: Simulation
  let outputPath: String?
  let pricesPath: String?
  let ratesPath: String?
  /// Of the events, and whose chain signs them.
  let signed: (percent: Int, authorityPath: String)?

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
    let arguments = try Arguments(
      arguments,
      valued: [
        "--uploads", "--seed", "--from", "--to", "-o", "--prices", "--rates", "--signed-percent",
        "--authority",
      ], plain: ["--small"])
    uploadCount = try arguments.required("--uploads", 1...5_000_000)
    let from = arguments.text("--from") ?? "2025-01-01"
    let to = arguments.text("--to") ?? "2026-06-30"
    simulation = Simulation(
      seed: try arguments.required("--seed", 0...UInt64.max),
      fromMs: try Self.midnightMs("--from", from), toMs: try Self.midnightMs("--to", to) + dayMs,
      isSmall: arguments.has("--small"))
    guard simulation.fromMs < simulation.toMs else {
      throw UsageError(message: "--from \(from) lies after --to \(to)")
    }
    guard simulation.toMs - simulation.fromMs <= 3660 * dayMs else {
      throw UsageError(message: "--from \(from) and --to \(to) lie more than ten years apart")
    }
    switch (try arguments.integer("--signed-percent", 1...100), arguments.text("--authority")) {
    case (let percent?, let path?): signed = (percent, path)
    case (nil, nil): signed = nil
    default: throw UsageError(message: "--signed-percent and --authority go together")
    }
    outputPath = arguments.text("-o")
    pricesPath = arguments.text("--prices")
    ratesPath = arguments.text("--rates")
    let paths = [outputPath, pricesPath, ratesPath].compactMap(\.self)
    guard Set(paths).count == paths.count else {
      throw UsageError(message: "two outputs have the same file")
    }
  }

  private static func midnightMs(_ name: String, _ value: String) throws(UsageError) -> Int64 {
    guard let date = try? CivilDate(parsing: value), (2009...2099).contains(date.year) else {
      throw UsageError(message: "\(name) '\(value)' must be a date (YYYY-MM-DD) of 2009 to 2099")
    }
    return Int64(date.dayNumber) * dayMs
  }
}
