// Reads integer columns that represent narrower values: row and text numbers, codes of states and kinds.
package import Revenue

/// The years 0001 to 9999.
package let storedInstantsMs: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

extension Statement {
  private func damage(_ index: Int32) -> DatabaseError {
    DatabaseError(
      inconsistency: "column \(name(index)) has a value that this program never writes")
  }

  /// The number in a column. Throws damage if it does not fit: other programs may write to the file.
  @inline(__always)
  package func number<Number: FixedWidthInteger>(
    _ index: Int32, as type: Number.Type = Number.self
  ) throws(DatabaseError) -> Number {
    guard let number = Number(exactly: integer(index)) else { throw damage(index) }
    return number
  }

  /// As `number`; nil if the column is null.
  @inline(__always)
  package func optionalNumber<Number: FixedWidthInteger>(
    _ index: Int32, as type: Number.Type = Number.self
  ) throws(DatabaseError) -> Number? {
    isNull(index) ? nil : try number(index)
  }

  /// The number in a column. Throws damage if it is out of range.
  @inline(__always)
  package func number(
    _ index: Int32, in range: ClosedRange<Int64>
  ) throws(DatabaseError) -> Int64 {
    let number = integer(index)
    guard range.contains(number) else { throw damage(index) }
    return number
  }

  /// A time in milliseconds since 1970, within the years that events, receipts and replies may contain.
  @inline(__always)
  package func instant(_ index: Int32) throws(DatabaseError) -> Int64 {
    try number(index, in: storedInstantsMs)
  }

  /// As `instant`; nil if the column is null.
  @inline(__always)
  package func optionalInstant(_ index: Int32) throws(DatabaseError) -> Int64? {
    isNull(index) ? nil : try instant(index)
  }

  /// The refunded share of a sale.
  func share(_ index: Int32) throws(DatabaseError) -> RefundShare {
    let range = 0...Int64(RefundShare.all.thousandths)
    return RefundShare(percentage: Int32(try number(index, in: range)))
  }

  /// A day, counted from 1970-01-01, within the same years.
  package func day(_ index: Int32) throws(DatabaseError) -> Int {
    Int(try number(index, in: -719_162...2_932_896))
  }

  /// A count, or an amount that is not negative.
  @inline(__always)
  package func unsigned(_ index: Int32) throws(DatabaseError) -> Int64 {
    try number(index, in: 0...Int64.max)
  }

  /// As `unsigned`; nil if the column is null.
  @inline(__always)
  package func optionalUnsigned(_ index: Int32) throws(DatabaseError) -> Int64? {
    isNull(index) ? nil : try unsigned(index)
  }

  /// The position of an event, or the number of a row.
  @inline(__always)
  package func ordinal(_ index: Int32) throws(DatabaseError) -> Int {
    Int(try number(index, in: 0...Int64(Int.max / 2)))
  }

  /// As `ordinal`; nil if the column is null.
  @inline(__always)
  package func optionalOrdinal(_ index: Int32) throws(DatabaseError) -> Int? {
    isNull(index) ? nil : try ordinal(index)
  }

  /// A truth value: 1 or 0.
  @inline(__always)
  package func flag(_ index: Int32) throws(DatabaseError) -> Bool {
    try number(index, in: 0...1) == 1
  }

  /// As `flag`; nil if the column is null.
  @inline(__always)
  package func optionalFlag(_ index: Int32) throws(DatabaseError) -> Bool? {
    isNull(index) ? nil : try flag(index)
  }

  /// The symbol in a column; `none` if the column is null.
  @inline(__always)
  package func symbol(_ index: Int32) throws(DatabaseError) -> Symbol {
    try optionalNumber(index) ?? .none
  }

  /// The value for the code in a column. Throws damage for an unknown code: a guess would be a wrong figure.
  @inline(__always)
  package func code<Code: RawRepresentable>(
    _ index: Int32, as type: Code.Type = Code.self
  ) throws(DatabaseError) -> Code where Code.RawValue: FixedWidthInteger {
    guard let number = Code.RawValue(exactly: integer(index)), let code = Code(rawValue: number)
    else { throw damage(index) }
    return code
  }

  /// The value for the word in a column. Throws damage for an unknown word.
  package func word<Word: RawRepresentable>(
    _ index: Int32, as type: Word.Type = Word.self
  ) throws(DatabaseError) -> Word where Word.RawValue == String {
    guard let word = Word(rawValue: text(index)) else { throw damage(index) }
    return word
  }
}

extension Database {
  /// The number of a table's next row: its rows are numbered from 0.
  package func nextNumber(of table: StaticString) throws(DatabaseError) -> Int32 {
    let row = try prepare("SELECT max(id) FROM \(table)")
    guard try row.step(), !row.isNull(0) else { return 0 }
    return Int32(try row.number(0, in: 0...Int64(Int32.max - 1))) + 1
  }
}
