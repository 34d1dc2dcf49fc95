// Time zones: past and future offsets, rules, and files and names that are refused.
import Base
import Foundation
import TestSupport
import Testing

@Suite(.bounded) struct TimeZoneTests {
  @Test(arguments: [
    ("America/Sao_Paulo", "1900-01-01T00:00:00Z", -11188),
    ("America/Sao_Paulo", "2018-11-04T02:59:59Z", -10800),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z", -7200),
    ("America/Sao_Paulo", "2019-02-17T01:59:59Z", -7200),
    ("America/Sao_Paulo", "2019-02-17T02:00:00Z", -10800),
    ("Asia/Kathmandu", "1985-12-31T18:29:59Z", 19800),
    ("Asia/Kathmandu", "1985-12-31T18:30:00Z", 20700),
    ("Australia/Lord_Howe", "2025-04-05T14:59:59Z", 39600),
    ("Australia/Lord_Howe", "2025-04-05T15:00:00Z", 37800),
    ("Australia/Lord_Howe", "2025-10-04T15:29:59Z", 37800),
    ("Australia/Lord_Howe", "2025-10-04T15:30:00Z", 39600),
    ("Africa/Casablanca", "2025-02-23T01:59:59Z", 3600),
    ("Africa/Casablanca", "2025-02-23T02:00:00Z", 0),
    ("Africa/Casablanca", "2025-04-06T01:59:59Z", 0),
    ("Africa/Casablanca", "2025-04-06T02:00:00Z", 3600),
    ("Pacific/Apia", "2011-12-30T09:59:59Z", -36000),
    ("Pacific/Apia", "2011-12-30T10:00:00Z", 50400),
    ("Pacific/Apia", "2021-04-03T13:59:59Z", 50400),
    ("Pacific/Apia", "2021-04-03T14:00:00Z", 46800),
    ("Europe/Berlin", "1893-03-31T23:06:31Z", 3208),
    ("Europe/Berlin", "1893-03-31T23:06:32Z", 3600),
    ("Europe/Berlin", "2025-03-30T00:59:59Z", 3600),
    ("Europe/Berlin", "2025-03-30T01:00:00Z", 7200),
    ("Europe/Berlin", "2025-10-26T00:59:59Z", 7200),
    ("Europe/Berlin", "2025-10-26T01:00:00Z", 3600),
    ("America/Nuuk", "2023-03-26T00:59:59Z", -10800),
    ("America/Nuuk", "2023-03-26T01:00:00Z", -7200),
    ("Pacific/Kiritimati", "1994-12-31T10:00:00Z", 50400),
    ("Africa/Monrovia", "1972-01-07T00:44:29Z", -2670),
    ("Africa/Monrovia", "1972-01-07T00:44:30Z", 0),
    ("UTC", "2026-07-01T00:00:00Z", 0),
  ])
  func offsetOfThePast(zone: String, text: String, offsetSeconds: Int) throws {
    let table = try TimeZoneTable(zone)
    expectEqual(table.offsetSeconds(atMs: try Timestamp.parse(text)), offsetSeconds)
  }

  /// The C library's reading of the same files, in another process so that TZ stays its own.
  @Test(arguments: [
    "America/Sao_Paulo", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Casablanca",
    "Pacific/Apia", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Nuuk",
    "Asia/Gaza", "America/Santiago", "Antarctica/Troll", "Asia/Tehran", "Etc/GMT+12",
  ])
  func offsetsAgreeWithTheCLibrary(zone: String) throws {
    let seed: UInt64 = 41
    var random = SeededRandom(seed: seed)
    let table = try TimeZoneTable(zone)
    var seconds: [Int64] = []
    for _ in 0..<800 {
      // From 1900 on: before that, C libraries differ in a zone's first offset.
      seconds.append(Int64.random(in: -2_208_988_800...4_200_000_000, using: &random))
      seconds.append(Int64.random(in: 4_000_000_000...4_300_000_000, using: &random))
      seconds.append(Int64.random(in: 4_200_000_000...250_000_000_000, using: &random))
    }
    let lines = try Self.dateOutput(zone: zone, seconds: seconds)
    try #require(lines.count == seconds.count)
    for (second, line) in zip(seconds, lines) {
      let offset = table.offsetSeconds(atMs: second * 1000)
      expectEqual(Self.dateOffset(offset), line, "seed \(seed): \(second) in \(zone)")
    }
  }

  private static func dateOffset(_ seconds: Int) -> String {
    func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let magnitude = abs(seconds)
    return (seconds < 0 ? "-" : "+")
      + [magnitude / 3600, magnitude / 60 % 60, magnitude % 60].map(two).joined(separator: ":")
  }

  private static func dateOutput(zone: String, seconds: [Int64]) throws -> [String] {
    let temporary = try TemporaryDirectory()
    let input = URL(fileURLWithPath: temporary.path("seconds"))
    try Data(seconds.map { "@\($0)\n" }.joined().utf8).write(to: input)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["TZ=\(zone)", "LC_ALL=C", "date", "-f", input.path, "+%::z"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return String(decoding: data, as: UTF8.self).split(separator: "\n")
      // Zones without local time yet are written as -00.
      .map { $0 == "-00:00:00" ? "+00:00:00" : String($0) }
  }

  /// A zone with one change at 0 to +01:00, and then the rule of a footer.
  private static func zoneOffset(footer: String, at text: String) throws -> Int {
    try withZoneFile(zoneFile(footer: footer)) { name, directory in
      try TimeZoneTable(name, directory: directory)
        .offsetSeconds(atMs: Timestamp.parse(text))
    }
  }

  @Test(arguments: [
    ("CET-1CEST,M3.5.0,M10.5.0/3", "2101-03-27T00:59:59Z", 3600),
    ("CET-1CEST,M3.5.0,M10.5.0/3", "2101-03-27T01:00:00Z", 7200),
    ("CET-1CEST,M3.5.0,M10.5.0/3", "2101-10-30T00:59:59Z", 7200),
    ("CET-1CEST,M3.5.0,M10.5.0/3", "2101-10-30T01:00:00Z", 3600),
    ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-01T00:00:00Z", 7200),
    ("CET-1CEST,M3.5.0,M10.5.0/3", "9999-07-01T00:00:00Z", 7200),
    // The zone's first offset, before its only change.
    ("CET-1CEST,M3.5.0,M10.5.0/3", "1969-12-31T23:59:59Z", -1800),
    ("CET-1CEST,M3.5.0,M10.5.0/3", "1970-01-01T00:00:00Z", 3600),
    // South of the equator, half an hour.
    ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2300-01-15T00:00:00Z", 39600),
    ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2300-07-15T00:00:00Z", 37800),
    // Saving time below standard time.
    ("IST-1GMT0,M10.5.0,M3.5.0/1", "2200-07-15T00:00:00Z", 3600),
    ("IST-1GMT0,M10.5.0,M3.5.0/1", "2200-12-15T00:00:00Z", 0),
    // Times below 0 and above a day: 2105-03-28 is the last Sunday, the change on Saturday at 23:00.
    ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2105-03-29T00:59:59Z", -7200),
    ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2105-03-29T01:00:00Z", -3600),
    ("EET-2EEST,M3.4.4/50,M10.4.4/50", "2150-07-15T00:00:00Z", 10800),
    // All year saving time, the example of the standard.
    ("XXX3EDT4,0/0,J365/23", "2103-12-31T23:30:00Z", -14400),
    ("XXX3EDT4,0/0,J365/23", "2104-01-01T03:00:00Z", -14400),
    ("XXX3EDT4,0/0,J365/23", "2104-06-01T00:00:00Z", -14400),
    // Julian days: 60 is March 1 in every year, day 59 counted from 0 is February 29 in a leap year.
    ("AAA0BBB,J60/0,J300/0", "2104-02-29T23:59:59Z", 0),
    ("AAA0BBB,J60/0,J300/0", "2104-03-01T00:00:00Z", 3600),
    ("AAA0BBB,59/0,300/0", "2104-02-28T23:59:59Z", 0),
    ("AAA0BBB,59/0,300/0", "2104-02-29T00:00:00Z", 3600),
    ("AAA0BBB,59/0,300/0", "2105-03-01T00:00:00Z", 3600),
    ("AAA-1:02:03", "2104-02-29T00:00:00Z", 3723),
    ("", "2104-02-29T00:00:00Z", 3600),
  ])
  func offsetByTheFooter(footer: String, text: String, offsetSeconds: Int) throws {
    try expectEqual(Self.zoneOffset(footer: footer, at: text), offsetSeconds)
  }

  @Test(arguments: [
    "AB0", "AAA", "AAA25", "AAA0BBB", "AAA0BBB,M3.5.0", "AAA0BBB,M13.1.0,M1.1.0",
    "AAA0BBB,M3.6.0,M1.1.0", "AAA0BBB,M3.0.0,M1.1.0", "AAA0BBB,M3.1.7,M1.1.0", "AAA0BBB,J0,J1",
    "AAA0BBB,J366,J1", "AAA0BBB,366,1", "AAA0BBB,1,2,3", "AAA0BBB,1/168,2", "<AAA0", "AAA0:60",
    "AAA0 ", "AAA0BBB,1,2 ", "AAA0BBB,M1,M2", "0", "AAA99999999999999999999",
  ])
  func damagedFooterIsRefused(footer: String) {
    #expect(throws: TimeZoneError(name: "Zone", cause: .malformed)) {
      try Self.zoneOffset(footer: footer, at: "2026-01-01T00:00:00Z")
    }
  }

  @Test(arguments: [
    "", "/Europe/Berlin", "..", "../zoneinfo/UTC", "Europe/../Europe/Berlin", "Europe//Berlin",
    "Europe/", "./UTC", "Europe/.hidden", "Europe/Berlin\0", "Europe Berlin", "Europe\\Berlin",
    "Zürich", String(repeating: "a", count: 256),
  ])
  func nameThatIsNoneIsRefused(name: String) {
    #expect(throws: TimeZoneError(name: name, cause: .notZoneName)) { try TimeZoneTable(name) }
  }

  @Test(arguments: ["localtime", "posixrules"])
  func zoneThatDependsOnTheMachineIsRefused(name: String) {
    #expect(throws: TimeZoneError(name: name, cause: .dependsOnMachine)) {
      try TimeZoneTable(name)
    }
  }

  @Test(arguments: ["Mars/Base", "Europe", "Europe/Berlin/Mitte", "NUL"])
  func unknownZoneIsRefused(name: String) {
    #expect(throws: TimeZoneError(name: name, cause: .noSuchZone)) { try TimeZoneTable(name) }
  }

  @Test(
    arguments: [
      (.notZoneName, "reading time zone \"A?B\": not a name such as Europe/Berlin"),
      (
        .noSuchZone,
        "reading time zone \"A?B\": no such zone in the system's tz database (package tzdata)"
      ),
      (.unreadable(errno: 13), "reading time zone \"A?B\": permission denied"),
      (.notTimeZoneFile, "reading time zone \"A?B\": its file is not a TZif file"),
      (.malformed, "reading time zone \"A?B\": its file is damaged"),
      (
        .leapSeconds,
        "reading time zone \"A?B\": it counts leap seconds, which timestamps do not"
      ),
    ] as [(TimeZoneError.Cause, String)])
  func errorNamesZoneAndCause(cause: TimeZoneError.Cause, text: String) {
    expectEqual(TimeZoneError(name: "A\u{1B}B", cause: cause).description, text)
  }

  @Test func utcNeedsNoFile() throws {
    let table = try TimeZoneTable("UTC", directory: "nowhere")
    expectEqual(table.name, "UTC")
    expectEqual(table.offsetSeconds(atMs: Int64.max), 0)
    expectEqual(table.offsetSeconds(atMs: Int64.min), 0)
  }

  @Test func dataVersionIsThatOfTheFirstLine() throws {
    #expect(TimeZoneTable.dataVersion(directory: "nowhere") == nil)
    for (line, version) in [
      ("# version 2026f\nR d 1916\n", "2026f"), ("# version 2026f", "2026f"), ("R d 1916\n", nil),
      ("# version \n", nil), ("# version a b\n", nil), ("", nil),
    ] {
      try Self.withDirectory { directory in
        try Data(line.utf8).write(to: directory.appendingPathComponent("tzdata.zi"))
        expectEqual(TimeZoneTable.dataVersion(directory: directory.path), version)
      }
    }
  }

  @Test func fileThatIsNoZoneIsRefused() throws {
    for bytes in [[], Array("TZi".utf8), Array("# version 2026f\n".utf8)] as [[UInt8]] {
      #expect(throws: TimeZoneError(name: "Zone", cause: .notTimeZoneFile)) {
        try Self.withZoneFile(bytes) { try TimeZoneTable($0, directory: $1) }
      }
    }
  }

  @Test func fileThatCountsLeapSecondsIsRefused() throws {
    #expect(throws: TimeZoneError(name: "Zone", cause: .leapSeconds)) {
      try Self.withZoneFile(Self.zoneFile(footer: "AAA0", leapCount: 1)) {
        try TimeZoneTable($0, directory: $1)
      }
    }
  }

  @Test func fileOfTheFirstVersionIsReadWithoutARule() throws {
    var bytes = Array(Self.zoneFile(footer: "").prefix(44 + 4 + 1 + 12))
    bytes[4] = 0
    try Self.withZoneFile(bytes) { name, directory in
      let table = try TimeZoneTable(name, directory: directory)
      expectEqual(table.offsetSeconds(atMs: -1), -1800)
      expectEqual(table.offsetSeconds(atMs: 0), 3600)
      expectEqual(table.offsetSeconds(atMs: Int64.max), 3600)
    }
  }

  @Test func everyTruncationIsRefused() throws {
    let whole = Self.zoneFile(footer: "CET-1CEST,M3.5.0,M10.5.0/3")
    for count in whole.indices {
      #expect(throws: TimeZoneError.self, "\(count) bytes") {
        try Self.withZoneFile(Array(whole.prefix(count))) { try TimeZoneTable($0, directory: $1) }
      }
    }
  }

  /// Any damage is refused or read as some zone; it never traps and never reads past the end.
  @Test(arguments: [UInt64(51), 52])
  func damagedFileNeverTraps(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let whole = Self.zoneFile(footer: "CET-1CEST,M3.5.0,M10.5.0/3")
    var refusedCount = 0
    for _ in 0..<1500 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(
          in: 0...255, using: &random)
      }
      do {
        try Self.withZoneFile(bytes) { name, directory in
          let table = try TimeZoneTable(name, directory: directory)
          for ms in [Int64.min, -1, 0, 4_200_000_000_000, Int64.max] {
            let offset = table.offsetSeconds(atMs: ms)
            #expect(abs(offset) <= 90_000, "seed \(seed)")
          }
        }
      } catch is TimeZoneError {
        refusedCount += 1
      }
    }
    #expect(refusedCount > 0)
  }

  /// TZif version 2: -00:30 at first, from 1970 on +01:00, then the footer's rule.
  private static func zoneFile(footer: String, leapCount: UInt32 = 0) -> [UInt8] {
    func big(_ value: some FixedWidthInteger) -> [UInt8] {
      withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
    func block(timeSize: Int) -> [UInt8] {
      var bytes = Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
      for count in [0, 0, leapCount, 1, 2, 0] as [UInt32] { bytes += big(count) }
      bytes += [UInt8](repeating: 0, count: timeSize) + [1]
      bytes += big(Int32(-1800)) + [0, 0] + big(Int32(3600)) + [0, 0]
      return bytes + [UInt8](repeating: 0, count: Int(leapCount) * (timeSize + 4))
    }
    return block(timeSize: 4) + block(timeSize: 8) + Array("\n\(footer)\n".utf8)
  }

  private static func withZoneFile<Value>(
    _ bytes: [UInt8], _ body: (_ name: String, _ directory: String) throws -> Value
  ) throws -> Value {
    try withDirectory { directory in
      try Data(bytes).write(to: directory.appendingPathComponent("Zone"))
      return try body("Zone", directory.path)
    }
  }

  private static func withDirectory<Value>(_ body: (URL) throws -> Value) throws -> Value {
    let temporary = try TemporaryDirectory()
    return try body(URL(fileURLWithPath: temporary.path))
  }
}
