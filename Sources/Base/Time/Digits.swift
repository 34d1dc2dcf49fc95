// Digits and letters in times, dates and codes, and division that rounds down.

/// The quotient rounded towards negative infinity; `divisor` is above 0. Not generic, because reports call it for
/// every instant.
@inlinable @inline(__always)
package func floorDivide(_ dividend: Int64, _ divisor: Int64) -> Int64 {
  let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
  return remainder < 0 ? quotient - 1 : quotient
}

/// The same for day and year numbers.
@inlinable @inline(__always)
package func floorDivide(_ dividend: Int, _ divisor: Int) -> Int {
  let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
  return remainder < 0 ? quotient - 1 : quotient
}

/// Appends four digits. Outside 0000 to 9999, appends ISO 8601's expanded form: a sign and at least six digits.
package func appendYear(_ year: Int, to output: inout [UInt8]) {
  if (0...9999).contains(year) {
    appendTwoDigits(year / 100, to: &output)
    appendTwoDigits(year % 100, to: &output)
    return
  }
  output.append(year < 0 ? UInt8(ascii: "-") : UInt8(ascii: "+"))
  let digits = String(year.magnitude)
  for _ in digits.utf8.count..<max(6, digits.utf8.count) { output.append(UInt8(ascii: "0")) }
  output.append(contentsOf: digits.utf8)
}

/// Appends a number from 0 to 99 with two digits.
package func appendTwoDigits(_ value: Int, to output: inout [UInt8]) {
  output.append(UInt8(ascii: "0") + UInt8(value / 10))
  output.append(UInt8(ascii: "0") + UInt8(value % 10))
}

/// The number written in ASCII digits; nil if a byte of the range is not a digit. The range must lie within the text.
@inline(__always)
func decimalValue(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int? {
  var value = 0
  for place in range {
    let digit = text[place] &- UInt8(ascii: "0")
    guard digit < 10 else { return nil }
    value = value * 10 + Int(digit)
  }
  return value
}

/// The index of an ASCII letter in the alphabet, from 0, in either case; nil for other bytes.
@inlinable @inline(__always)
package func letterIndex(_ byte: UInt8) -> Int? {
  let capital = byte & 0xDF
  guard (0x41...0x5A).contains(capital) else { return nil }
  return Int(capital - 0x41)
}

/// The value of an ASCII digit; nil for other bytes.
@inline(__always)
package func digitValue(_ byte: UInt8) -> UInt8? {
  let value = byte &- UInt8(ascii: "0")
  return value <= 9 ? value : nil
}
