// `settlement import`: declares the reports in which Apple says what it sold and paid.
import Base
import Intake
import Ledger
import Projections
import Revenue

let settlementImportCommand = Command(
  "settlement import", summary: "Declare Apple's financial reports and payment overviews",
  details: [
    "FILE is a file of App Store Connect, unchanged, perhaps compressed with gzip: a detailed or a financial report, or "
      + "the payment overview. Its content says which. A financial report has its region in its name, as in "
      + "`85012345_0926_EU.txt`, or in `--region`. If any file is bad, nothing is declared.",
    "Of a month and region one file counts; the same file again declares nothing. An interrupted import is "
      + "finished by the same command. docs/settlement.md says what the files mean.",
  ],
  positionals: [
    Positional("FILE", arity: .oneOrMore, help: "a file of Apple's; `-` is standard input")
  ],
  options: [
    Option(
      "region", value: .init("REGION"),
      help:
        "the region of financial reports, as in their names: two letters, or `ZZ` for a report of all"
    ),
    Option(
      "month", value: .init("MONTH"),
      help: "the fiscal month of an overview that does not name it in English, as in `FY2026-P01`"),
    Option("replace", help: "let a file supersede the one of its month and region that counts now"),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl settlement import 85012345_0926_EU.txt 85012345_0926_US.txt financial_report.csv",
      "Declare a month: two regions and the payment overview")
  ]
) { invocation, context in
  let options = try CheckedSettlementFile.Options(invocation)
  let ledger = try OpenLedger(invocation, context)
  let interruption = context.interruption
  let stop = StopFlag { interruption.isRequested }
  var intake = SettlementIntake(replaces: invocation.has("replace"))
  for path in invocation.positionals { try intake.read(path, options, stop) }
  try intake.refuseBad()
  do {
    try ledger.withWriter { writer in
      try intake.plan(SettlementFiles(try ledger.projections()))
      try intake.append(to: writer)
    }
  } catch {
    if let text = intake.interruptionText { context.diagnostics.writeLine(visible(text)) }
    throw error
  }
  try context.print(invocation, list: intake.plans.map(\.record)) { sheet in
    for plan in intake.plans { try sheet.line(visible(plan.sentence)) }
  }
  // Report the append before anything can fail in the projections.
  try context.output.flush()
  if intake.plans.contains(where: { !$0.positions.isEmpty }) { _ = try ledger.projections() }
  return .done
}

extension CheckedSettlementFile.Options {
  fileprivate init(_ invocation: Invocation) throws(UsageError) {
    self.init()
    region = try invocation.value(
      "region", "is not a region: two letters, or Z1"
    ) { text in
      let region = text.uppercased()
      return ReportRegion.isValid(region) ? region : nil
    }
    month = try invocation.value(
      "month", "is not a fiscal month, as in FY2026-P01", read: FiscalMonth.init(parsing:))
  }
}

/// The files of one command.
private struct SettlementIntake {
  /// What happens with a file.
  struct Plan {
    let file: CheckedSettlementFile
    /// Where it is declared already.
    var known: Position?
    /// The first part to append, from 1.
    var nextPart = 1
    var positions: [Position] = []
  }

  let replaces: Bool
  private(set) var plans: [Plan] = []
  private var problems: [DeclarationError] = []

  init(replaces: Bool) { self.replaces = replaces }

  mutating func read(
    _ path: String, _ options: CheckedSettlementFile.Options, _ stop: StopFlag
  ) throws {
    do throws(DeclarationError) {
      plans.append(Plan(file: try CheckedSettlementFile(path: path, options, stop: stop)))
    } catch { problems.append(error) }
  }

  /// Throws if any file cannot be read: all that are wrong, together.
  func refuseBad() throws {
    if problems.isEmpty { return }
    throw SettlementRefusal(texts: problems.map(\.description))
  }

  /// Decides what is appended. Throws if a file contradicts one that counts, or another of the command.
  mutating func plan(_ files: SettlementFiles) throws {
    var texts: [String] = []
    for index in plans.indices {
      let file = plans[index].file
      if let earlier = plans[..<index].first(where: { $0.file.sha256Hex == file.sha256Hex }) {
        if earlier.file.identity != file.identity {
          texts.append(Self.twice(file, earlier.file.identity))
        }
        (plans[index].known, plans[index].nextPart) = (earlier.known, file.partCount + 1)
      } else if let other = plans[..<index].first(where: { $0.file.identity == file.identity }) {
        texts.append("\(file.path): is of \(file.identity), as \(other.file.path) is")
      } else if let same = files.current(sha256Hex: file.sha256Hex) {
        if same.identity != file.identity { texts.append(Self.twice(file, same.identity)) }
        (plans[index].known, plans[index].nextPart) = (same.lastPosition, file.partCount + 1)
      } else if let other = files.current(file.identity), !replaces {
        texts.append(
          "\(file.path): \(file.identity) is declared at position \(other.lastPosition) with another content; "
            + "--replace lets this file supersede it")
      } else if let open = files.unfinishedFile(file.identity, sha256Hex: file.sha256Hex) {
        plans[index].nextPart = open.positions.count + 1
      }
    }
    if !texts.isEmpty { throw SettlementRefusal(texts: texts) }
  }

  private static func twice(
    _ file: CheckedSettlementFile, _ identity: SettlementIdentity
  ) -> String {
    "\(file.path): the same content is declared as \(identity); it can't also be \(file.identity)"
  }

  /// Appends the parts that are missing. While one becomes durable, the next is made.
  mutating func append(to writer: LedgerAppender) throws {
    for index in plans.indices where plans[index].nextPart <= plans[index].file.partCount {
      var waiting: LedgerAppender.Ticket?
      for part in plans[index].nextPart...plans[index].file.partCount {
        let ticket = try writer.submit([plans[index].file.draft(part: part)])
        if let waiting { plans[index].positions += try writer.positions(of: waiting) }
        waiting = ticket
      }
      if let waiting { plans[index].positions += try writer.positions(of: waiting) }
    }
    // A file that the command has twice is where its first copy is.
    for index in plans.indices where plans[index].known == nil && plans[index].positions.isEmpty {
      let digest = plans[index].file.sha256Hex
      plans[index].known = plans[..<index].first { $0.file.sha256Hex == digest }?.positions.last
    }
  }

  /// What an interruption left.
  var interruptionText: String? {
    let count = plans.map(\.positions.count).reduce(0, +)
    if count == 0 { return nil }
    return
      "ledgerctl: \(counted(count, "event")) \(count == 1 ? "was" : "were") appended; run the same command "
      + "again to append the rest"
  }
}

/// Why nothing is declared: a line for each file that is wrong.
private struct SettlementRefusal: ReportableError {
  let texts: [String]

  func lines(for command: String) -> [String] {
    texts.flatMap { $0.split(separator: "\n") }.map { "\(command): \($0)" }
  }
}

extension SettlementIntake.Plan {
  fileprivate var record: Record {
    [
      "file": file.path, "kind": file.kind.rawValue, "fiscal_month": file.identity.month,
      "region": file.identity.region, "sha256": file.sha256Hex, "rows": file.rowCount,
      "exceptions": file.findingCount, "position": positions.last ?? known,
      "is_known": positions.isEmpty,
    ]
  }

  /// `45545510_0914_EU.txt: financial report of FY2014-P12 EU, 6 rows, at position 12`.
  fileprivate var sentence: String {
    let what = file.kind == .overview ? "payment overview" : "\(file.kind.rawValue) report"
    let region = file.identity.region.map { " \($0)" } ?? ""
    let place =
      positions.isEmpty
      ? "is declared already, at position \(known ?? 0)"
      : "at position \(positions.last ?? 0)"
    let findings =
      file.findingCount == 0
      ? "" : ", \(counted(file.findingCount, "exception")) ('ledgerctl export exceptions')"
    return
      "\(file.path): \(what) of \(file.identity.month)\(region), \(counted(file.rowCount, "row")), \(place)"
      + findings
  }
}
