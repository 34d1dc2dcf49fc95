// Rules R8 and R12: the refunds of a sale, from its statements in the order of their time; and their stored form.
import Base

/// What Advanced Commerce refunds on a date.
struct RefundSum: Equatable {
  /// Epoch milliseconds.
  var dateMs: Int64
  var micros: Int64
}

/// What one statement contains about refunds of its sale.
package struct RefundStatement {
  /// Where it comes from: a reply, a signed transaction, or one with `advancedCommerceInfo`.
  enum Source: Int8 { case reply, signed, advanced }

  var source: Source
  /// Its time; for a reply without one, the date of its cancellation. Epoch milliseconds.
  var timeMs: Int64
  /// Whether the statement itself has that time.
  var isTimed = true
  /// The date of a Reversal caused by it: its time, or that of the event with the reply.
  var reversalMs: Int64
  /// The date of the cancellation or revocation; nil for Advanced Commerce.
  var dateMs: Int64?
  var percentage: Int32?
  var reason = Text(start: nil, count: 0)
  /// By date, each date once.
  var sums: [RefundSum] = []
  var isUpgraded = false

  init(_ source: Source, timeMs: Int64, reversalMs: Int64) {
    (self.source, self.timeMs, self.reversalMs) = (source, timeMs, reversalMs)
  }

  var isSigned: Bool { source != .reply }

  /// R12: the share that a signed statement shows.
  var share: RefundShare {
    dateMs == nil ? .none : percentage.map { RefundShare(percentage: $0) } ?? .all
  }

  /// Whether another statement of the same source has the same content, at whatever time.
  func saysTheSame(as other: RefundStatement) -> Bool {
    source == other.source && dateMs == other.dateMs && percentage == other.percentage
      && isUpgraded == other.isUpgraded && reason.equals(other.reason) && sums == other.sums
  }

  /// R12: earlier, or at the same time a reply while the other is signed.
  func precedes(_ other: RefundStatement) -> Bool {
    timeMs != other.timeMs ? timeMs < other.timeMs : !isSigned && other.isSigned
  }

  /// The second of an instant. Replies and signed statements agree on a refund's date only to the second.
  static func second(_ epochMs: Int64) -> Int64 {
    epochMs / 1000 - (epochMs % 1000 < 0 ? 1 : 0)
  }
}

/// What is refunded of a sale: a share, and in addition what Advanced Commerce refunds on each date.
struct RefundTotal {
  var share = RefundShare.none
  /// By date, each more than 0.
  var sums: [RefundSum] = []

  var isRefunded: Bool { share != .none || !sums.isEmpty }

  /// All that Advanced Commerce refunds, limited to the greatest value, which exceeds every amount.
  var micros: Int64 { sums.reduce(0) { $0.addingCapped($1.micros) } }

  func micros(on dateMs: Int64) -> Int64 { sums.first { $0.dateMs == dateMs }?.micros ?? 0 }

  func isSame(as other: RefundTotal, ofQuantity quantity: Int64) -> Bool {
    if share == .all, other.share == .all { return true }
    return !share.isGreater(than: other.share, ofQuantity: quantity)
      && !other.share.isGreater(than: share, ofQuantity: quantity) && sums == other.sums
  }
}

/// The outcome of a sale's statements.
struct RefundOutcome {
  var total = RefundTotal()
  /// The last statement, in the order of time, that changed the total.
  var changer: RefundStatement?
  /// Whether that one is a reply whose cancellation was taken for a full refund.
  var isAssumed = false
  /// Whether there was an upgrade with an unknown credit.
  var hasUnknownCredit = false
  /// The newest share that signed statements name for a date, by its second; none for a date of Advanced Commerce.
  var signedShares: [Int64: RefundShare] = [:]
}

/// The statements of a sale with at least one about a refund or an upgrade, in the order of their time.
package struct RefundHistory {
  private(set) var statements: [RefundStatement] = []
  /// What Advanced Commerce had refunded when the newest line that assumes a full refund was booked.
  var sumsBeforeAssumed: [RefundSum] = []

  /// Above this number, repeated statements are dropped.
  package static let countKept = 24

  package var count: Int { statements.count }

  /// The history of a sale for whose earlier statements only the newest times are known.
  init(newestTimesOf sale: Sale) {
    let (replyMs, signedMs) = (sale.newestReplyMs, sale.newestSignedMs)
    if replyMs != .min {
      insert(RefundStatement(.reply, timeMs: replyMs, reversalMs: sale.newestReplyEventMs))
    }
    if signedMs != .min {
      insert(RefundStatement(.signed, timeMs: signedMs, reversalMs: signedMs))
    }
  }

  /// An empty history, to read a stored one into.
  init() {}

  /// Adds a statement that was stored; false if it precedes the one before it.
  mutating func append(_ statement: RefundStatement) -> Bool {
    if let last = statements.last, statement.precedes(last) { return false }
    statements.append(statement)
    return true
  }

  /// Adds a statement, after those of its time and source.
  mutating func insert(_ statement: RefundStatement) {
    let next = statements.lastIndex { !statement.precedes($0) }.map { $0 + 1 } ?? 0
    statements.insert(statement, at: next)
    if statements.count > Self.countKept { dropRepeats() }
  }

  /// Drops each statement between two of its source with the same content, if all statements between those two repeat
  /// their own source: it cannot change the total, whatever is inserted between them later.
  mutating func dropRepeats() {
    // By source, replies first: the last statement so far, and whether there was new content since the one before.
    var last: [Int?] = [nil, nil]
    var isRepeat: [Bool] = []
    for (index, statement) in statements.enumerated() {
      let source = statement.isSigned ? 1 : 0
      isRepeat.append(last[source].map { statements[$0].saysTheSame(as: statement) } ?? false)
      last[source] = index
    }
    var isKept = Array(repeating: true, count: statements.count)
    for isSigned in [false, true] {
      let indexes = statements.indices.filter { statements[$0].isSigned == isSigned }
      for (before, (index, after)) in zip(indexes, zip(indexes.dropFirst(), indexes.dropFirst(2)))
      where isRepeat[before + 1...after].allSatisfy({ $0 }) { isKept[index] = false }
    }
    statements = zip(statements, isKept).filter(\.1).map(\.0)
  }

  // MARK: Total

  /// R8 and R12: the outcome of the statements.
  func outcome(ofQuantity quantity: Int64) -> RefundOutcome {
    var walk = Walk(statements, quantity)
    for statement in statements { walk.take(statement) }
    return walk.outcome
  }

  /// Visits the statements once.
  private struct Walk {
    let quantity: Int64
    var outcome = RefundOutcome()
    private var isUpgraded = false
    private var isAdvanced = false
    /// The seconds of the cancellations that replies named.
    private var repliedSeconds: Set<Int64> = []
    /// The times of the newest statement, of the newest reply with a cancellation, and of the newest reversing one.
    private var newestMs = Int64.min
    private var cancelledMs = Int64.min
    private var reversedMs = Int64.min

    init(_ statements: [RefundStatement], _ quantity: Int64) {
      self.quantity = quantity
      var isUpgraded = false
      for statement in statements {
        if statement.isUpgraded { isUpgraded = true }
        guard statement.source == .signed, let dateMs = statement.dateMs,
          !isUpgraded || statement.percentage != nil
        else { continue }
        outcome.signedShares[RefundStatement.second(dateMs)] = statement.share
      }
      for sum in statements.lazy.flatMap(\.sums) {
        outcome.signedShares[RefundStatement.second(sum.dateMs)] = RefundShare.none
      }
    }

    mutating func take(_ statement: RefundStatement) {
      let before = outcome.total
      var isAssumed = false
      if statement.isUpgraded { isUpgraded = true }
      switch statement.source {
      case .advanced:
        isAdvanced = true
        outcome.total = RefundTotal(sums: statement.sums.filter { $0.micros > 0 })
      case .signed where isUpgraded && statement.percentage == nil:
        outcome.hasUnknownCredit = true
      case .signed:
        if !isAdvanced { outcome.total.share = statement.share }
      case .reply:
        if let dateMs = statement.dateMs {
          isAssumed = giveBack(statement, RefundStatement.second(dateMs))
        } else if before.isRefunded, statement.timeMs > cancelledMs {
          outcome.total = RefundTotal()
          reversedMs = statement.timeMs
        }
      }
      newestMs = statement.timeMs
      if outcome.total.isSame(as: before, ofQuantity: quantity) { return }
      outcome.changer = statement
      outcome.isAssumed = isAssumed
    }

    /// Applies a reply with a cancellation; returns whether it assumes a share.
    private mutating func giveBack(_ reply: RefundStatement, _ second: Int64) -> Bool {
      defer {
        repliedSeconds.insert(second)
        cancelledMs = reply.timeMs
      }
      if isUpgraded {
        outcome.hasUnknownCredit = true
        return false
      }
      let known = outcome.signedShares[second]
      if outcome.total.isRefunded {
        if known != nil || repliedSeconds.contains(second) || reply.timeMs <= newestMs {
          return false
        }
        outcome.total.share = .all
      } else if reply.timeMs > reversedMs {
        outcome.total.share = known ?? .all
      }
      return known == nil
    }
  }
}

extension Int64 {
  /// The sum, limited to the greatest value.
  func addingCapped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}

// MARK: - Stored form

extension RefundHistory {
  /// The statements as bytes, in the form that projections store and `init(stored:_:)` reads.
  package var stored: [UInt8] {
    var writer = HistoryWriter()
    writer.write(statements.count)
    for statement in statements {
      writer.write(statement.source.rawValue)
      writer.write((statement.isTimed ? 1 : 0) + (statement.isUpgraded ? 2 : 0))
      writer.write(statement.timeMs)
      writer.write(statement.reversalMs)
      writer.write(statement.dateMs == nil ? 0 : 1)
      if let dateMs = statement.dateMs { writer.write(dateMs) }
      writer.write(statement.percentage ?? -1)
      writer.write(statement.reason)
      writer.write(statement.sums)
    }
    writer.write(sumsBeforeAssumed)
    return writer.bytes
  }

  /// Reads the bytes of `stored`; the arena keeps the texts. Nil if the bytes are damaged.
  package init?(stored bytes: UnsafeRawBufferPointer, _ arena: TextArena) {
    self.init()
    var reader = HistoryReader(bytes)
    do throws(HistoryReader.Damage) { try read(&reader, arena) } catch { return nil }
    guard reader.isAtEnd, count > 0 else { return nil }
  }

  private mutating func read(
    _ reader: inout HistoryReader, _ arena: TextArena
  ) throws(HistoryReader.Damage) {
    for _ in 0..<(try reader.count()) {
      guard let source = RefundStatement.Source(rawValue: Int8(try reader.integer(in: 0...2)))
      else { throw HistoryReader.Damage() }
      let flags = try reader.integer(in: 0...3)
      var statement = RefundStatement(
        source, timeMs: try reader.instant(), reversalMs: try reader.instant())
      statement.isTimed = flags & 1 != 0
      statement.isUpgraded = flags & 2 != 0
      statement.dateMs = try reader.integer(in: 0...1) == 1 ? try reader.instant() : nil
      let percentage = try reader.integer(in: -1...Int64(RefundShare.all.thousandths))
      statement.percentage = percentage < 0 ? nil : Int32(percentage)
      statement.reason = arena.keep(try reader.text())
      statement.sums = try reader.sums()
      guard append(statement) else { throw HistoryReader.Damage() }
    }
    sumsBeforeAssumed = try reader.sums()
  }
}

/// Writes variable-length integers, and texts with their length.
private struct HistoryWriter {
  private(set) var bytes: [UInt8] = []

  /// Writes an integer in zigzag encoding, seven bits per byte, lowest first. A set top bit means that more bytes follow.
  mutating func write(_ value: some BinaryInteger) {
    let value = Int64(value)
    var rest = UInt64(bitPattern: value << 1 ^ value >> 63)
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func write(_ text: Text) {
    write(text.count)
    bytes.append(contentsOf: text)
  }

  mutating func write(_ sums: [RefundSum]) {
    write(sums.count)
    for sum in sums {
      write(sum.dateMs)
      write(sum.micros)
    }
  }
}

/// Reads what `HistoryWriter` writes. Texts point into its bytes.
private struct HistoryReader {
  struct Damage: Error {}

  /// The dates that receipts and replies may contain: the years 0001 to 9999.
  private static let instantsMs: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

  private let bytes: UnsafeRawBufferPointer
  private var place = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { place == bytes.count }

  private mutating func integer() throws(Damage) -> Int64 {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 7) {
      guard place < bytes.count else { throw Damage() }
      let byte = bytes[place]
      place += 1
      // The tenth byte holds only one of the 64 bits.
      guard shift < 63 || byte <= 1 else { throw Damage() }
      value |= UInt64(byte & 0x7F) << UInt64(shift)
      if byte < 0x80 { return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1) }
    }
    throw Damage()
  }

  mutating func integer(in range: ClosedRange<Int64>) throws(Damage) -> Int64 {
    let value = try integer()
    guard range.contains(value) else { throw Damage() }
    return value
  }

  mutating func instant() throws(Damage) -> Int64 { try integer(in: Self.instantsMs) }

  /// The number of parts that follow, each at least one byte: never more than the bytes left.
  mutating func count() throws(Damage) -> Int {
    let count = try integer()
    guard count >= 0, count <= bytes.count - place else { throw Damage() }
    return Int(count)
  }

  mutating func text() throws(Damage) -> Text {
    let count = try count()
    defer { place += count }
    return Text(rebasing: bytes[place..<place + count])
  }

  mutating func sums() throws(Damage) -> [RefundSum] {
    var sums: [RefundSum] = []
    for _ in 0..<(try count()) {
      let sum = RefundSum(dateMs: try instant(), micros: try integer(in: 0...Int64.max))
      if let last = sums.last, sum.dateMs <= last.dateMs { throw Damage() }
      sums.append(sum)
    }
    return sums
  }
}
