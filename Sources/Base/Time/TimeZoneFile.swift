// A parsed TZif file (RFC 9636): the changes it lists and the rule in its footer.

/// The content of a zone's TZif file.
struct TimeZoneFile: Sendable {
  /// The offset before the first change.
  var firstOffsetSeconds: Int
  /// Strictly ascending.
  var transitions: [TimeZoneRule.Transition]
  /// Applies after the last change, or to all time if there is no change.
  var rule: TimeZoneRule?

  static let magic: [UInt8] = Array("TZif".utf8)
  private static let headerSize = 44
  /// RFC 9636 section 3.2: a little over a day either way.
  private static let offsets = -89_999...93_599

  private struct Header {
    let version: UInt8
    let utcIndicatorCount: Int
    let standardIndicatorCount: Int
    let leapCount: Int
    let transitionCount: Int
    let typeCount: Int
    let nameSize: Int

    init?(_ bytes: UnsafeRawBufferPointer, at start: Int) {
      guard start + headerSize <= bytes.count,
        bytes[start..<start + 4].elementsEqual(magic)
      else { return nil }
      func count(_ index: Int) -> Int {
        Int(bytes.bigEndian(UInt32.self, at: start + 20 + index * 4))
      }
      version = bytes[start + 4]
      utcIndicatorCount = count(0)
      standardIndicatorCount = count(1)
      leapCount = count(2)
      transitionCount = count(3)
      typeCount = count(4)
      nameSize = count(5)
    }

    /// Bytes of the block after the header. Six 32-bit counts cannot overflow 64 bits.
    func blockSize(timeSize: Int) -> Int {
      transitionCount * (timeSize + 1) + typeCount * 6 + nameSize + leapCount * (timeSize + 4)
        + standardIndicatorCount + utcIndicatorCount
    }
  }

  /// Parses a file's bytes. Memory use is at most a small multiple of their size.
  init(parsing bytes: UnsafeRawBufferPointer) throws(TimeZoneError.Cause) {
    guard let first = Header(bytes, at: 0) else { throw .notTimeZoneFile }
    guard first.version >= UInt8(ascii: "2") else {
      try self.init(block: bytes, at: Self.headerSize, header: first, timeSize: 4)
      return
    }
    let secondPlace = Self.headerSize + first.blockSize(timeSize: 4)
    guard let second = Header(bytes, at: secondPlace) else { throw .malformed }
    let blockPlace = secondPlace + Self.headerSize
    try self.init(block: bytes, at: blockPlace, header: second, timeSize: 8)

    let footer = UnsafeRawBufferPointer(
      rebasing: bytes[(blockPlace + second.blockSize(timeSize: 8))...])
    guard footer.count >= 2, footer[0] == UInt8(ascii: "\n"),
      let length = footer[1...].firstIndex(of: UInt8(ascii: "\n"))
    else { throw .malformed }
    if length == 1 { return }
    guard let rule = TimeZoneRule(parsing: UnsafeRawBufferPointer(rebasing: footer[1..<length]))
    else { throw .malformed }
    self.rule = rule
  }

  private init(
    block bytes: UnsafeRawBufferPointer, at start: Int, header: Header, timeSize: Int
  ) throws(TimeZoneError.Cause) {
    guard start + header.blockSize(timeSize: timeSize) <= bytes.count, header.typeCount > 0
    else { throw .malformed }
    // With leap seconds, the same number would mean a different instant.
    guard header.leapCount == 0 else { throw .leapSeconds }
    let typeIndexes = start + header.transitionCount * timeSize
    let types = typeIndexes + header.transitionCount
    var typeOffsets: [Int] = []
    for type in 0..<header.typeCount {
      let offset = Int(bytes.bigEndian(Int32.self, at: types + type * 6))
      guard Self.offsets.contains(offset) else { throw .malformed }
      typeOffsets.append(offset)
    }
    transitions = []
    transitions.reserveCapacity(header.transitionCount)
    for index in 0..<header.transitionCount {
      let at =
        timeSize == 8
        ? bytes.bigEndian(Int64.self, at: start + index * 8)
        : Int64(bytes.bigEndian(Int32.self, at: start + index * 4))
      let type = Int(bytes[typeIndexes + index])
      guard type < typeOffsets.count, (transitions.last?.atSeconds ?? Int64.min) < at || index == 0
      else { throw .malformed }
      transitions.append(.init(atSeconds: at, offsetSeconds: typeOffsets[type]))
    }
    firstOffsetSeconds = typeOffsets[0]
  }
}

extension UnsafeRawBufferPointer {
  /// An integer in network byte order at an offset that need not be aligned.
  fileprivate func bigEndian<Value: FixedWidthInteger>(_ type: Value.Type, at start: Int) -> Value {
    Value(bigEndian: loadUnaligned(fromByteOffset: start, as: type))
  }
}

// MARK: - The rule in the footer

/// Standard time and, if the zone has it, daylight saving time, for all later years: the POSIX TZ string in the footer
/// (RFC 9636 section 3.3).
struct TimeZoneRule: Hashable, Sendable {
  struct Saving: Hashable, Sendable {
    let offsetSeconds: Int
    let start: YearlyDate
    let end: YearlyDate
  }

  /// A day and time of each year, on the wall clock before the change.
  struct YearlyDate: Hashable, Sendable {
    enum Day: Hashable, Sendable {
      /// 1 to 365; February 29 is not counted.
      case julian(Int)
      /// 0 to 365; February 29 is counted.
      case zeroBased(Int)
      /// Month 1 to 12, week 1 to 5 (5 is the last), weekday 0 (Sunday) to 6.
      case weekday(month: Int, week: Int, weekday: Int)
    }

    let day: Day
    /// From -167 to 167 hours.
    let timeSeconds: Int

    /// The wall-clock time of this date in a year, read as UTC, in seconds since 1970.
    func wallSeconds(year: Int) -> Int64 {
      Int64(dayNumber(year: year)) * 86_400 + Int64(timeSeconds)
    }

    private func dayNumber(year: Int) -> Int {
      let newYearDay = CivilDate(firstOf: year).dayNumber
      switch day {
      case .julian(let day):
        return newYearDay + day - 1 + (CivilDate.isLeap(year: year) && day >= 60 ? 1 : 0)
      case .zeroBased(let day):
        return newYearDay + day
      case .weekday(let month, let week, let weekday):
        let firstDay = CivilDate(firstOf: year, month: month).dayNumber
        // 1970-01-01 was a Thursday, weekday 4.
        let firstWeekday = (firstDay + 4) - floorDivide(firstDay + 4, 7) * 7
        var dayOfMonth = (weekday - firstWeekday + 7) % 7 + (week - 1) * 7
        if dayOfMonth >= CivilDate.dayCount(year: year, month: month) { dayOfMonth -= 7 }
        return firstDay + dayOfMonth
      }
    }
  }

  let standardOffsetSeconds: Int
  let saving: Saving?

  /// Seconds east of UTC at an instant.
  func offsetSeconds(atSeconds seconds: Int64) -> Int {
    guard saving != nil else { return standardOffsetSeconds }
    let year = CivilDate(dayNumber: Int(floorDivide(seconds, 86_400))).year
    // The nearest change before an instant is in its year or an adjacent one, even with the offsets.
    var nearest: Transition?
    for candidateYear in (year - 1)...(year + 1) {
      for transition in transitions(year: candidateYear) where transition.atSeconds <= seconds {
        if let known = nearest, known.atSeconds >= transition.atSeconds { continue }
        nearest = transition
      }
    }
    return nearest?.offsetSeconds ?? standardOffsetSeconds
  }

  struct Transition: Hashable, Sendable {
    let atSeconds: Int64
    let offsetSeconds: Int
  }

  /// The changes of a year, ascending. There are none if saving time never begins, or ends when it begins. If saving
  /// time ends at the instant when next year's begins, it lasts all year and has no end.
  func transitions(year: Int) -> [Transition] {
    guard let saving else { return [] }
    let start = Transition(
      atSeconds: saving.start.wallSeconds(year: year) - Int64(standardOffsetSeconds),
      offsetSeconds: saving.offsetSeconds)
    let end = Transition(
      atSeconds: saving.end.wallSeconds(year: year) - Int64(saving.offsetSeconds),
      offsetSeconds: standardOffsetSeconds)
    let nextStartSeconds = saving.start.wallSeconds(year: year + 1) - Int64(standardOffsetSeconds)
    if end.atSeconds == nextStartSeconds { return [start] }
    if start.atSeconds == end.atSeconds { return [] }
    return start.atSeconds < end.atSeconds ? [start, end] : [end, start]
  }
}

extension TimeZoneRule {
  /// Reads a POSIX TZ string with RFC 9636's extensions; nil if it is malformed or names saving time without its
  /// dates.
  init?(parsing text: UnsafeRawBufferPointer) {
    var scanner = Scanner(text: text)
    guard scanner.skipName(), let west = scanner.offset(hoursMax: 24) else { return nil }
    standardOffsetSeconds = -west
    guard !scanner.isAtEnd else {
      saving = nil
      return
    }
    guard scanner.skipName() else { return nil }
    var savingOffsetSeconds = standardOffsetSeconds + 3600
    if scanner.peek != UInt8(ascii: ",") {
      guard let savingWest = scanner.offset(hoursMax: 24) else { return nil }
      savingOffsetSeconds = -savingWest
    }
    guard let start = scanner.yearlyDate(), let end = scanner.yearlyDate(), scanner.isAtEnd
    else { return nil }
    saving = Saving(offsetSeconds: savingOffsetSeconds, start: start, end: end)
  }

  private struct Scanner {
    let text: UnsafeRawBufferPointer
    var index = 0

    var isAtEnd: Bool { index == text.count }
    var peek: UInt8? { index < text.count ? text[index] : nil }

    mutating func skip(_ byte: UInt8) -> Bool {
      guard peek == byte else { return false }
      index += 1
      return true
    }

    /// `EST`, or `<-03>`: at least three characters.
    mutating func skipName() -> Bool {
      let isQuoted = skip(UInt8(ascii: "<"))
      let start = index
      while let byte = peek {
        let isSignOrDigit =
          digitValue(byte) != nil || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
        guard letterIndex(byte) != nil || (isQuoted && isSignOrDigit) else { break }
        index += 1
      }
      guard index - start >= 3 else { return false }
      return isQuoted ? skip(UInt8(ascii: ">")) : true
    }

    /// One to three digits.
    mutating func number(_ range: ClosedRange<Int>) -> Int? {
      let start = index
      var value = 0
      while index - start < 3, let byte = peek, let digit = digitValue(byte) {
        value = value * 10 + Int(digit)
        index += 1
      }
      return index > start && range.contains(value) ? value : nil
    }

    /// `[+-]hours[:minutes[:seconds]]` in seconds.
    mutating func offset(hoursMax: Int) -> Int? {
      let isNegative = skip(UInt8(ascii: "-"))
      if !isNegative { _ = skip(UInt8(ascii: "+")) }
      guard let hours = number(0...hoursMax) else { return nil }
      var seconds = hours * 3600
      for unitSeconds in [60, 1] {
        guard skip(UInt8(ascii: ":")) else { break }
        guard let value = number(0...59) else { return nil }
        seconds += value * unitSeconds
      }
      return isNegative ? -seconds : seconds
    }

    /// `,Jn`, `,n` or `,Mm.w.d`, then `/time` if it is not 02:00.
    mutating func yearlyDate() -> YearlyDate? {
      guard skip(UInt8(ascii: ",")), let day = day() else { return nil }
      var timeSeconds = 7200
      if skip(UInt8(ascii: "/")) {
        guard let time = offset(hoursMax: 167) else { return nil }
        timeSeconds = time
      }
      return YearlyDate(day: day, timeSeconds: timeSeconds)
    }

    private mutating func day() -> YearlyDate.Day? {
      if skip(UInt8(ascii: "J")) { return number(1...365).map { .julian($0) } }
      guard skip(UInt8(ascii: "M")) else { return number(0...365).map { .zeroBased($0) } }
      guard let month = number(1...12), skip(UInt8(ascii: ".")), let week = number(1...5),
        skip(UInt8(ascii: ".")), let weekday = number(0...6)
      else { return nil }
      return .weekday(month: month, week: week, weekday: weekday)
    }
  }
}
