// Cells of many rows in few bytes, kept until it is known in which order they are written.
import Revenue

/// Cells one after another, with copies of their texts.
struct PackedCells {
  private enum Tag: UInt8 {
    case empty, text, currency, integer, amount, time, flag, list, other
  }

  private var bytes: [UInt8] = []
  /// Cells that own what they hold, which are rare.
  private var others: [ReportCell] = []

  /// The place behind the last cell.
  var end: Int { bytes.count }

  // MARK: Writing

  mutating func append(_ cell: ReportCell) {
    switch cell {
    case .empty: append(tag: .empty)
    case .text(let text): append(tag: .text, text)
    case .word(let word): append(tag: .text, word.text)
    case .currency(let currency):
      append(tag: .currency)
      bytes.append(currency.ordinal)
    case .integer(let value):
      append(tag: .integer)
      append(raw: value)
    case .amount(let micros, let currency):
      append(tag: .amount)
      append(raw: micros)
      bytes.append(currency?.ordinal ?? .max)
    case .time(let epochMs):
      append(tag: .time)
      append(raw: epochMs)
    case .flag(let value):
      append(tag: .flag)
      bytes.append(value ? 1 : 0)
    case .list(let texts):
      append(tag: .list)
      append(raw: UInt32(texts.count))
      for text in texts { append(sized: text) }
    default:
      append(tag: .other)
      append(raw: others.count)
      others.append(cell)
    }
  }

  private mutating func append(tag: Tag) { bytes.append(tag.rawValue) }

  private mutating func append(tag: Tag, _ text: Text) {
    append(tag: tag)
    append(sized: text)
  }

  private mutating func append(sized text: Text) {
    append(raw: UInt32(text.count))
    bytes.append(contentsOf: text)
  }

  private mutating func append<Value>(raw value: Value) {
    withUnsafeBytes(of: value) { bytes.append(contentsOf: $0) }
  }

  /// Copies the cells at some places of others; returns their places here.
  mutating func append(_ cells: PackedCells, _ range: Range<Int>) -> Range<Int> {
    let start = end
    // Nothing but the cells that own what they hold would have another meaning here.
    cells.forEach(in: range) { append($0) }
    return start..<end
  }

  // MARK: Reading

  /// Calls `body` with the cells at some places. A text is valid until `body` returns.
  func forEach(in range: Range<Int>, _ body: (ReportCell) throws -> Void) rethrows {
    try bytes.withUnsafeBytes { bytes in
      var reader = Reader(bytes: bytes, offset: range.lowerBound)
      while reader.offset < range.upperBound {
        guard let tag = Tag(rawValue: reader.next(UInt8.self)) else {
          preconditionFailure("a cell without a form")
        }
        try body(cell(tag, &reader))
      }
    }
  }

  private func cell(_ tag: Tag, _ reader: inout Reader) -> ReportCell {
    switch tag {
    case .empty: .empty
    case .text: .text(reader.text())
    case .currency: .currency(Currency(ordinal: reader.next(UInt8.self)))
    case .integer: .integer(reader.next(Int64.self))
    case .amount: reader.amount()
    case .time: .time(reader.next(Int64.self))
    case .flag: .flag(reader.next(UInt8.self) == 1)
    case .list: .list((0..<reader.next(UInt32.self)).map { _ in reader.text() })
    case .other: others[reader.next(Int.self)]
    }
  }

  private struct Reader {
    let bytes: UnsafeRawBufferPointer
    var offset: Int

    mutating func next<Value: BitwiseCopyable>(_ type: Value.Type) -> Value {
      defer { offset += MemoryLayout<Value>.size }
      return bytes.loadUnaligned(fromByteOffset: offset, as: type)
    }

    mutating func text() -> Text {
      let count = Int(next(UInt32.self))
      defer { offset += count }
      return Text(rebasing: bytes[offset..<offset + count])
    }

    mutating func amount() -> ReportCell {
      let micros = next(Int128.self)
      let ordinal = next(UInt8.self)
      return .amount(micros, ordinal == .max ? nil : Currency(ordinal: ordinal))
    }
  }
}
