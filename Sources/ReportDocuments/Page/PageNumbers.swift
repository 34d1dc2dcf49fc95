// Numbers on a page: exact texts, grouped for the eye alone; changes and shares as rounded percentages.
import Revenue

/// Fractions in percent, computed exactly and rounded once.
package enum PagePercent {
  /// `12.3 %`: part ÷ whole, rounded half to even to one decimal. Nil if the whole is not positive.
  package static func text(_ part: Int128, of whole: Int128) -> String? {
    guard let (digits, isNegative) = permille(part, of: whole) else { return nil }
    return "\(isNegative && digits > 0 ? "-" : "")\(digits / 10).\(digits % 10) %"
  }

  /// How much more `after` is than `before`, with a sign. Nil if `before` is 0, or too small to compare with.
  package static func change(from before: Int128, to after: Int128) -> String? {
    guard before != 0, let (digits, isNegative) = permille(after - before, of: abs(before)),
      // Beyond that a percentage says nothing.
      digits < 1_000_000
    else { return nil }
    let sign = digits == 0 ? "±" : isNegative ? "-" : "+"
    return "\(sign)\(digits / 10).\(digits % 10) %"
  }

  /// Tenths of a percent.
  private static func permille(_ part: Int128, of whole: Int128) -> (UInt128, isNegative: Bool)? {
    guard whole > 0 else { return nil }
    let (product, overflow) = part.magnitude.multipliedReportingOverflow(by: 1000)
    guard !overflow else { return nil }
    var (quotient, rest) = product.quotientAndRemainder(dividingBy: whole.magnitude)
    let complement = whole.magnitude - rest
    if rest > complement || rest == complement && quotient % 2 == 1 { quotient += 1 }
    return (quotient, part < 0)
  }
}

extension HTML {
  /// Writes the exact text of an amount or a count. Groups of three digits are set apart by the style sheet and
  /// decimals beyond the currency's own are set smaller; the text itself is that of every other report.
  /// - Parameter fineWidth: the room for such decimals, so that decimal points stand below each other; 0 for none.
  package mutating func number(_ text: String, minorDigits: Int = 0, fineWidth: Int = 0) {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    var digits = Substring(parts[0])
    var sign = ""
    while let first = digits.first, !first.isWholeNumber { sign.append(digits.removeFirst()) }
    let head = digits.count % 3 == 0 && !digits.isEmpty ? 3 : digits.count % 3
    self.text(sign + digits.prefix(head))
    digits = digits.dropFirst(head)
    while !digits.isEmpty {
      element("span", text: String(digits.prefix(3)))
      digits = digits.dropFirst(3)
    }
    let decimals = parts.count == 2 ? parts[1] : ""
    if minorDigits > 0, !decimals.isEmpty { self.text("." + decimals.prefix(minorDigits)) }
    let fine = (minorDigits > 0 || decimals.isEmpty ? "" : ".") + decimals.dropFirst(minorDigits)
    if fineWidth > 0 {
      element("small", ["class": "w\(fineWidth)"], text: fine)
    } else if !fine.isEmpty {
      element("small", text: fine)
    }
  }

  mutating func amount(_ micros: Int128, _ currency: Currency, fineWidth: Int = 0) {
    number(
      Amount.text(micros: micros, currency: currency), minorDigits: currency.minorDigits,
      fineWidth: fineWidth)
  }

  /// An amount with a sign in front, 0 without one.
  mutating func signedAmount(_ micros: Int128, _ currency: Currency, fineWidth: Int = 0) {
    number(
      (micros > 0 ? "+" : "") + Amount.text(micros: micros, currency: currency),
      minorDigits: currency.minorDigits, fineWidth: fineWidth)
  }

  /// The room that decimals beyond the currency's own need in a column with these amounts; 0 if none has any.
  static func fineWidth(_ amounts: [(micros: Int128, currency: Currency)]) -> Int {
    var width = 0
    for (micros, currency) in amounts {
      let text = Amount.text(micros: micros, currency: currency)
      let decimals = text.split(separator: ".").dropFirst().first?.count ?? 0
      // Without decimals of its own, the point is among the small characters.
      guard decimals > currency.minorDigits else { continue }
      width = max(width, decimals - currency.minorDigits + (currency.minorDigits == 0 ? 1 : 0))
    }
    return width
  }

  mutating func count(_ value: Int128) { number(String(value)) }

  mutating func signedCount(_ value: Int128) { number((value > 0 ? "+" : "") + String(value)) }
}
