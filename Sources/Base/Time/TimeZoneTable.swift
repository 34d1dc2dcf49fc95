// A zone of the system's tz database and its UTC offset at any instant; and the App Store's wall clock.
import Glibc

/// A time zone by its IANA name. Immutable: later changes to the file have no effect.
package struct TimeZoneTable: Sendable {
  /// The directory of the system's tz database.
  package static let systemDirectory = "/usr/share/zoneinfo"
  /// The zone that every report uses by default; it needs no file.
  package static let utc = TimeZoneTable()

  /// The name as given, such as `Europe/Berlin`.
  package let name: String

  private let firstOffsetSeconds: Int
  /// Ascending: all changes in the file, and those that its rule gives before `expandedYearEnd`.
  private let transitions: [TimeZoneRule.Transition]
  /// For instants after the last transition.
  private let rule: TimeZoneRule?

  private static let expandedYearMin = 1800
  private static let expandedYearEnd = 2101
  private static let nameSizeMax = 255
  /// The largest zone file of the tz database is 4 KB.
  private static let fileSizeMax = 1 << 20

  private init() {
    name = "UTC"
    firstOffsetSeconds = 0
    transitions = []
    rule = nil
  }

  /// Reads a zone. `UTC` needs no file.
  /// - Parameter name: letters, digits, `_`, `+`, `-` and `.`, in parts between slashes.
  package init(_ name: String, directory: String = systemDirectory) throws(TimeZoneError) {
    if name == "UTC" {
      self = .utc
      return
    }
    do throws(TimeZoneError.Cause) {
      guard Self.isZoneName(name) else { throw .notZoneName }
      if Self.machineNames.contains(name) { throw .dependsOnMachine }
      let bytes = try readZoneFile("\(directory)/\(name)", sizeMax: Self.fileSizeMax)
      let result = bytes.withUnsafeBytes { bytes in
        Result { () throws(TimeZoneError.Cause) in try TimeZoneFile(parsing: bytes) }
      }
      self.init(name: name, file: try result.get())
    } catch {
      throw TimeZoneError(name: name, cause: error)
    }
  }

  init(name: String, file: TimeZoneFile) {
    self.name = name
    firstOffsetSeconds = file.firstOffsetSeconds
    rule = file.rule
    var transitions = file.transitions
    if let rule = file.rule, let last = transitions.last {
      let lastYear = CivilDate(dayNumber: Int(floorDivide(last.atSeconds, 86_400))).year
      // Starts a year early: a change near New Year may belong to the rule's other year. If a file's changes end
      // before time zones existed, its rule alone answers, for each year.
      let isExpandable = (Self.expandedYearMin..<Self.expandedYearEnd).contains(lastYear)
      let years = isExpandable ? (lastYear - 1)..<Self.expandedYearEnd : 0..<0
      var lastSeconds = last.atSeconds
      for year in years {
        for transition in rule.transitions(year: year) where transition.atSeconds > lastSeconds {
          transitions.append(transition)
          lastSeconds = transition.atSeconds
        }
      }
    }
    self.transitions = transitions
  }

  /// Seconds east of UTC at an instant in epoch milliseconds.
  package func offsetSeconds(atMs ms: Int64) -> Int {
    span(containing: floorDivide(ms, 1000)).offsetSeconds
  }

  /// A range of instants with one offset.
  package struct Span: Sendable {
    /// Seconds since 1970, inclusive.
    package let fromSeconds: Int64
    /// Seconds since 1970, inclusive.
    package let throughSeconds: Int64
    package let offsetSeconds: Int
  }

  /// The offset at a second since 1970, and a range of instants around it with the same offset.
  package func span(containing seconds: Int64) -> Span {
    let after = lowerBound(transitions.indices) { transitions[$0].atSeconds <= seconds }
    let fromSeconds = after > 0 ? transitions[after - 1].atSeconds : Int64.min
    if after < transitions.count {
      return Span(
        fromSeconds: fromSeconds, throughSeconds: transitions[after].atSeconds - 1,
        offsetSeconds: after > 0 ? transitions[after - 1].offsetSeconds : firstOffsetSeconds)
    }
    if let rule, rule.saving != nil {
      return Span(
        fromSeconds: seconds, throughSeconds: seconds,
        offsetSeconds: rule.offsetSeconds(atSeconds: seconds))
    }
    return Span(
      fromSeconds: fromSeconds, throughSeconds: Int64.max,
      offsetSeconds: rule?.standardOffsetSeconds ?? transitions.last?.offsetSeconds
        ?? firstOffsetSeconds)
  }

  /// The first instant of a local day, in epoch milliseconds.
  /// - Parameter dayNumber: days since 1970-01-01 in local time.
  package func startMs(ofDay dayNumber: Int) -> Int64 {
    // No offset is as large as this.
    let offsetSecondsMax: Int64 = 100_000
    var low = Int64(dayNumber) * 86_400 - offsetSecondsMax
    var high = low + 2 * offsetSecondsMax
    while low < high {
      let middle = low + (high - low) / 2
      let localSeconds = middle + Int64(span(containing: middle).offsetSeconds)
      if floorDivide(localSeconds, 86_400) >= dayNumber { high = middle } else { low = middle + 1 }
    }
    return low * 1000
  }

  /// The version of the tz database, such as `2026a`. Reports state it, because the rules change from time to time. Nil
  /// if the system's copy does not contain it.
  package static func dataVersion(directory: String = systemDirectory) -> String? {
    let prefix = Array("# version ".utf8)
    guard let bytes = try? readZoneFile("\(directory)/tzdata.zi", sizeMax: fileSizeMax),
      bytes.starts(with: prefix)
    else { return nil }
    let version = bytes.dropFirst(prefix.count).prefix { $0 != UInt8(ascii: "\n") }
    guard (1...32).contains(version.count), version.allSatisfy({ (0x21...0x7E).contains($0) })
    else { return nil }
    return String(decoding: version, as: UTF8.self)
  }

  /// Zone files that reflect a machine's settings: the same report would differ on another machine.
  private static let machineNames: Set<String> = ["localtime", "posixrules"]

  private static func isZoneName(_ name: String) -> Bool {
    guard (1...nameSizeMax).contains(name.utf8.count) else { return false }
    let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return parts.allSatisfy { part in
      guard !part.isEmpty, part.first != UInt8(ascii: ".") else { return false }
      return part.allSatisfy { byte in
        letterIndex(byte) != nil || digitValue(byte) != nil || "_+-.".utf8.contains(byte)
      }
    }
  }
}

/// A time zone that can't be used, with its name and the cause.
package struct TimeZoneError: Error, Equatable, CustomStringConvertible {
  /// What is wrong with the name or with the zone's file.
  package enum Cause: Error, Equatable, Sendable {
    case notZoneName
    case dependsOnMachine
    case noSuchZone
    case unreadable(errno: Int32)
    case notTimeZoneFile
    case malformed
    case leapSeconds
  }

  /// As given; the description shows at most 64 characters of it, and only printable ones.
  package let name: String
  package let cause: Cause

  /// The error for a zone with this name.
  package init(name: String, cause: Cause) {
    self.name = name
    self.cause = cause
  }

  package var description: String {
    let shown = name.unicodeScalars.prefix(64).map {
      (0x20...0x7E).contains($0.value) ? String($0) : "?"
    }.joined()
    return "reading time zone \"\(shown)\": \(causeText)"
  }

  private var causeText: String {
    switch cause {
    case .notZoneName: "not a name such as Europe/Berlin"
    case .dependsOnMachine: "its meaning depends on the machine; name a zone such as Europe/Berlin"
    case .noSuchZone: "no such zone in the system's tz database (package tzdata)"
    case .unreadable(let number): systemErrorText(number)
    case .notTimeZoneFile: "its file is not a TZif file"
    case .malformed: "its file is damaged"
    case .leapSeconds: "it counts leap seconds, which timestamps do not"
    }
  }
}

/// Reads a whole regular file of at most `sizeMax` bytes.
private func readZoneFile(_ path: String, sizeMax: Int) throws(TimeZoneError.Cause) -> [UInt8] {
  do throws(SmallFileError) { return try SmallFile.read(path, byteCountMax: sizeMax) } catch {
    switch error {
    case .system(let error):
      throw error.code == ENOENT || error.code == ENOTDIR
        ? .noSuchZone : .unreadable(errno: error.code)
    case .notRegular: throw .noSuchZone
    case .larger: throw .notTimeZoneFile
    }
  }
}

// MARK: - The App Store's wall clock

/// The App Store's wall clock, Los Angeles since 2007, by fixed rules, so that no system's time zone data can change a
/// figure: 8 hours behind UTC, and 7 hours behind from the second Sunday of March, 02:00, to the first Sunday of
/// November, 02:00 (Energy Policy Act of 2005). In-app purchases began in 2009; years before 2007 had other rules.
package enum PacificTime {
  package static let firstYear = 2007
  private static let standardOffsetSeconds = -28_800
  private static let daylightOffsetSeconds = -25_200

  /// Seconds east of UTC at a wall-clock time; nil before 2007.
  ///
  /// The hour from 01:00 occurs twice in November and is read as the first occurrence, in daylight time. The hour
  /// from 02:00 that March skips is read in standard time, an hour before the clock time that it means.
  /// - Parameter secondOfDay: seconds since midnight on the wall clock.
  package static func offsetSeconds(
    year: Int, month: Int, day: Int, secondOfDay: Int
  ) -> Int? {
    guard year >= firstYear else { return nil }
    let isDaylight =
      switch month {
      case 3:
        isNotBefore(day, secondOfDay, sunday(2, year: year, month: 3), hour: 3)
      case 4...10: true
      case 11:
        !isNotBefore(day, secondOfDay, sunday(1, year: year, month: 11), hour: 2)
      default: false
      }
    return isDaylight ? daylightOffsetSeconds : standardOffsetSeconds
  }

  private static func isNotBefore(
    _ day: Int, _ secondOfDay: Int, _ changeDay: Int, hour: Int
  ) -> Bool {
    day > changeDay || day == changeDay && secondOfDay >= hour * 3_600
  }

  /// The day of the month of the month's first, second, ... Sunday.
  private static func sunday(_ ordinal: Int, year: Int, month: Int) -> Int {
    // 1970-01-01 was a Thursday, so day number 3 was a Sunday.
    let first = CivilDate.dayNumber(year: year, month: month, day: 1)
    let daysToSunday = (3 - first) - floorDivide(3 - first, 7) * 7
    return 1 + daysToSunday + (ordinal - 1) * 7
  }
}
