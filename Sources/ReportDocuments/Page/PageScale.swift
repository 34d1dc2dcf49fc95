// The scale of a chart: round steps around all values, and places on it. Integers only.
import Revenue

/// A scale from `low` to `high`, both multiples of a round step; 0 is on it.
package struct PageScale {
  let low: Int128
  let high: Int128
  let step: Int128

  /// The number of parts into which places divide the scale.
  static let parts: Int128 = 10_000
  /// More steps than this would be a crowded axis.
  private static let stepsMax: Int128 = 4

  /// A scale for these values.
  /// - Parameter unit: the smallest step.
  package init(_ values: [Int128], unit: Int128 = 1) {
    let top = max(0, values.max() ?? 0)
    let bottom = min(0, values.min() ?? 0)
    var step = unit
    var factor = 0
    // 1, 2, 5, 10, 20, 50 …
    while Self.steps(bottom, top, step) > Self.stepsMax {
      step = factor % 3 == 1 ? step / 2 * 5 : step * 2
      factor += 1
    }
    self.step = step
    low = Self.floor(bottom, step) * step
    let rounded = -Self.floor(-top, step) * step
    high = rounded == low ? low + step : rounded
  }

  /// A scale that ends with the values themselves, for bars without an axis.
  init(around values: [Int128]) {
    low = min(0, values.min() ?? 0)
    high = max(low + 1, max(0, values.max() ?? 0))
    step = high - low
  }

  private static func steps(_ bottom: Int128, _ top: Int128, _ step: Int128) -> Int128 {
    -floor(-top, step) - floor(bottom, step)
  }

  private static func floor(_ value: Int128, _ step: Int128) -> Int128 {
    let (quotient, rest) = value.quotientAndRemainder(dividingBy: step)
    return rest < 0 ? quotient - 1 : quotient
  }

  /// The multiples of the step, from the highest.
  package var ticks: [Int128] {
    (0...Int((high - low) / step)).map { high - Int128($0) * step }
  }

  /// How far a value is above the low end, in parts of the scale.
  package func place(_ value: Int128) -> Int {
    var (part, whole) = (value - low, high - low)
    // The product must fit; what is cut off is far less than a part.
    while whole > Int128(1) << 100 { (part, whole) = (part >> 8, whole >> 8) }
    return Int(part * Self.parts / whole)
  }

  /// A part of the scale as a number of hundredths: `12.5` for 1,250 parts.
  static func text(_ parts: Int) -> String {
    let (whole, rest) = parts.quotientAndRemainder(dividingBy: 100)
    if rest == 0 { return "\(whole)" }
    return rest % 10 == 0 ? "\(whole).\(rest / 10)" : "\(whole).\(rest < 10 ? "0" : "")\(rest)"
  }

  /// The text of a tick, in thousands or more where all ticks are such.
  package func label(_ tick: Int128) -> String {
    let micros: Int128 = 1_000_000
    for (factor, suffix) in [(1_000_000_000, "bn"), (1_000_000, "M"), (1000, "k")]
      as [(Int128, String)]
    where step % (factor * micros) == 0 {
      return tick == 0 ? "0" : "\(tick / (factor * micros))\(suffix)"
    }
    return Amount.text(micros: tick, currency: nil)
  }
}
