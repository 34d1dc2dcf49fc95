// `doctor`: looks for troubles of a ledger, and says what helps.
import AppStore
import Base
import Glibc
import HTTPClient
import Ledger
import Server

let doctorCommand = Command(
  "doctor", summary: "Look for troubles of the ledger, and say what helps",
  details: [
    "Checks who may use the files, disk, clock, log, keys, projections, config.json, tokens, the copy, webhooks, "
      + "erasures, apps, prices, rates and Apple's files; docs/doctor.md lists the checks. It prints each trouble "
      + "with its cause and the command that helps, or `sound` with the number of checks. It changes nothing, "
      + "takes no lock, and works next to a server and on ledgers that other commands refuse.",
    "A check that cannot be made is `unknown`, which counts as a warning. The log is checked as far as opening it "
      + "shows; `audit` reads all of it. The exit code is 0 for a sound ledger, 3 if there are warnings, 1 if there "
      + "are errors.",
  ],
  options: [
    Option("app-store", help: "also compare the clock with the App Store's"), .json,
  ],
  examples: [
    Example("ledgerctl doctor --app-store", "Check the ledger, and the clock with the App Store's")
  ]
) { invocation, context in
  let path = try context.ledgerPath(invocation)
  let root: Folder
  do throws(LedgerError) { root = try Folder(path: path) } catch {
    let isMissing = error.code == ENOENT || error.code == ENOTDIR
    throw Failure(
      isMissing ? .noLedger : .failed, operation: "doctor", object: path,
      cause: isMissing ? "there is no such directory" : error.cause)
  }
  // As every command, although the ledger may not open.
  let status = try root.ownStatus()
  try context.owner.assume(path, owner: status.owner, group: status.group)
  guard try ["ledger.json", "log"].contains(where: { try root.status($0) != nil }) else {
    throw Failure(
      .noLedger, operation: "doctor", object: path, cause: "it contains no ledger.json and no log")
  }
  let examination = Examination(path, root: root)
  if invocation.has("app-store") { examination.compareClock() }
  try context.print(invocation, examination.record) { try examination.write(to: &$0) }
  return examination.exitCode
}

// MARK: - Clock

extension Examination {
  private static let clockDifferenceMs: Int64 = 60_000
  private static let clockTimeoutMs = 10_000

  /// Compares the clock with the `Date` of a response of the App Store Server API, whatever its status.
  package func compareClock() {
    attempt(.clockOffAppStore) {
      let url = try configuration().appStore.serverAPIProductionURL
      var options = HTTPOptions(
        connectTimeoutMs: Self.clockTimeoutMs, timeoutMs: Self.clockTimeoutMs)
      options.keptHeaders = ["date"]
      func failure(_ cause: String) -> Failure {
        Failure(operation: "ask for the time", object: "the App Store", cause: cause)
      }
      let session: HTTPSession
      do throws(HTTPClientError) { session = try HTTPSession(options, requestsMax: 1) } catch {
        throw failure(error.cause)
      }
      defer { session.shutDown() }
      let result = Monitor<HTTPOutcome?>(nil, conditionCount: 1)
      var request = HTTPRequest(.get, url, bodyBytesMax: 64 << 10)
      request.avoidsProxy = url.hasPrefix("http:")
      session.send(request) { outcome in
        result.withLock { $0 = outcome }
        result.signal(0)
      }
      let outcome = result.wait(on: 0, limitMs: 3 * Int64(Self.clockTimeoutMs)) { $0 }
      guard let outcome, outcome.status != nil else {
        throw failure("it does not answer")
      }
      guard let theirsMs = outcome.headers["date"].flatMap(HTTPDate.milliseconds) else {
        throw failure("its response has no date")
      }
      let differenceMs = surroundings.nowMs() - theirsMs
      if abs(differenceMs) > Self.clockDifferenceMs {
        report(
          .clockOffAppStore, "clock",
          "it is \(DoctorSurroundings.age(abs(differenceMs))) \(differenceMs > 0 ? "ahead" : "behind")"
        )
      }
    }
  }
}

/// A date of HTTP in the form that servers must send (RFC 9110): `Sun, 06 Nov 1994 08:49:37 GMT`.
package enum HTTPDate {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Epoch milliseconds; nil for another form. Spaces are ignored: the client keeps none of a header's.
  package static func milliseconds(_ text: String) -> Int64? {
    let bytes = text.utf8.filter { $0 != 0x20 }
    guard bytes.count == 24, bytes[3] == UInt8(ascii: ",") else { return nil }
    func part(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
    guard part(21..<24) == "GMT", let month = months.firstIndex(of: part(6..<9)) else { return nil }
    let digits = month < 9 ? "0\(month + 1)" : "\(month + 1)"
    return try? Timestamp.parse("\(part(9..<13))-\(digits)-\(part(4..<6))T\(part(13..<21))Z")
  }
}

// MARK: - Output

extension Examination {
  var record: Record {
    [
      "verdict": verdict.rawValue,
      "checks": DoctorCheck.allCases.flatMap { check -> [Record] in
        let found = findings.filter { $0.check == check }.map { finding in
          record(check, finding.object, finding.cause, finding.command)
        }
        if !found.isEmpty { return found }
        return [record(check, nil, obstacles[check]?.text, nil)]
      },
    ]
  }

  private func record(
    _ check: DoctorCheck, _ object: String?, _ cause: String?, _ command: String?
  ) -> Record {
    [
      "id": check.rawValue, "verdict": verdict(check).rawValue, "object": object, "cause": cause,
      "command": command,
    ]
  }

  /// How many findings of one check, and ids of checks that were not made, are written as text.
  private static let findingCountMax = 10

  func write(to sheet: inout TextSections) throws {
    if verdict == .ok { return try sheet.line("sound: \(DoctorCheck.allCases.count) checks") }
    for wanted in [DoctorVerdict.error, .warning] {
      for check in DoctorCheck.allCases where verdict(check) == wanted {
        let found = findings.filter { $0.check == check }
        for finding in found.prefix(Self.findingCountMax) {
          try sheet.line(visible("\(wanted.rawValue)  \(check.rawValue): \(finding.object)"))
          try sheet.line(visible("  \(finding.cause)"))
          try sheet.line(visible("  \(finding.command)"))
          try sheet.line()
        }
        if found.count > Self.findingCountMax {
          try sheet.line("\(found.count - Self.findingCountMax) more of \(check.rawValue)\n")
        }
      }
    }
    let unknown = DoctorCheck.allCases.filter { verdict($0) == .unknown }
    for check in unknown where obstacles[check]?.trouble == nil {
      try sheet.line(visible("unknown  \(check.rawValue): \(obstacles[check]?.cause ?? "")"))
      try sheet.line()
    }
    for trouble in DoctorCheck.allCases {
      let hidden = unknown.filter { obstacles[$0]?.trouble == trouble }
      if hidden.isEmpty { continue }
      try sheet.line(
        "not checked because of \(trouble.rawValue): "
          + (hidden.count > Self.findingCountMax
            ? "\(hidden.count) others" : hidden.map(\.rawValue).joined(separator: ", ")))
      try sheet.line()
    }
    let counts = [DoctorVerdict.error, .warning, .unknown, .ok].map { wanted in
      "\(DoctorCheck.allCases.count { verdict($0) == wanted }) \(wanted.rawValue)"
    }
    try sheet.line("checks: " + counts.joined(separator: ", "))
  }
}
