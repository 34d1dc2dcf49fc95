// Bar charts as SVG, drawn without scripts and without binary floating point.
import Revenue

/// Bars in time order, above and below a line at 0.
package struct BarChart {
  /// One bar.
  package struct Bar {
    /// Its name on the axis.
    let axisLabel: String
    /// Its tooltip.
    let title: String
    let value: Int128
    /// Whether it is highlighted.
    let isMarked: Bool

    package init(axisLabel: String, title: String, value: Int128, isMarked: Bool) {
      self.axisLabel = axisLabel
      self.title = title
      self.value = value
      self.isMarked = isMarked
    }
  }

  /// The chart's name, for screen readers.
  let title: String
  /// The chart's content in a sentence.
  let description: String
  /// The name of its elements, unique on the page.
  let id: String
  let bars: [Bar]
  /// Whether values are counts, not amounts in micros.
  var isOfCounts = false

  package init(
    title: String, description: String, id: String, bars: [Bar], isOfCounts: Bool = false
  ) {
    self.title = title
    self.description = description
    self.id = id
    self.bars = bars
    self.isOfCounts = isOfCounts
  }

  private static let slot = 1000
  /// The width of bars within `slot`.
  private static let barWidth = 720
  /// The least height of a value other than 0, in parts of the scale.
  private static let heightMin = 60
  private static let axisLabelsMax = 8

  /// Writes the chart, without a table.
  package func write(to html: inout HTML) {
    let scale = PageScale(
      bars.map(\.value), unit: isOfCounts ? 1 : 10_000, one: isOfCounts ? 1 : 1_000_000)
    html.element("div", ["class": "plot"]) { html in
      html.element("div", ["class": "y", "aria-hidden": "true"]) { html in
        for tick in scale.ticks {
          html.element("span", text: scale.label(tick))
        }
      }
      drawing(scale, to: &html)
      html.element("div", ["class": "x", "aria-hidden": "true"]) { html in
        let every = max(1, (bars.count + Self.axisLabelsMax - 1) / Self.axisLabelsMax)
        for (index, bar) in bars.enumerated() {
          // Narrow screens show every other name.
          html.element(
            "span", ["class": index % (2 * every) == 0 ? "" : "odd"],
            text: index % every == 0 ? bar.axisLabel : "")
        }
      }
    }
  }

  private func drawing(_ scale: PageScale, to html: inout HTML) {
    let width = max(1, bars.count) * Self.slot
    html.element(
      "svg",
      [
        "viewBox": "0 0 \(PageScale.text(width)) 100", "preserveAspectRatio": "none",
        "role": "img", "aria-labelledby": "\(id)-title \(id)-text",
      ]
    ) { html in
      html.element("title", ["id": "\(id)-title"], text: title)
      html.element("desc", ["id": "\(id)-text"], text: description)
      for tick in scale.ticks {
        let y = PageScale.text(Int(PageScale.parts) - scale.offset(tick))
        html.element(
          "line",
          [
            "class": tick == 0 ? "zero" : "grid", "x1": "0", "x2": PageScale.text(width), "y1": y,
            "y2": y,
          ]
        ) { _ in }
      }
      for (index, bar) in bars.enumerated() where bar.value != 0 {
        draw(bar, at: index, scale, to: &html)
      }
    }
  }

  private func draw(_ bar: Bar, at index: Int, _ scale: PageScale, to html: inout HTML) {
    let zero = scale.offset(0)
    let offset = scale.offset(bar.value)
    let height = max(abs(offset - zero), Self.heightMin)
    let top = Int(PageScale.parts) - (bar.value > 0 ? zero + height : zero)
    html.element(
      "rect",
      [
        "class": bar.value < 0 ? "below" : bar.isMarked ? "marked" : "bar",
        "x": PageScale.text(index * Self.slot + (Self.slot - Self.barWidth) / 2),
        "y": PageScale.text(top), "width": PageScale.text(Self.barWidth),
        "height": PageScale.text(height),
      ]
    ) { $0.element("title", text: bar.title) }
  }
}

/// The bar in a table's row: it repeats the number next to it, so it has no name of its own.
struct RowBar {
  let scale: PageScale
  let value: Int128
  /// Where it begins: in a waterfall at the end of the bar before.
  var from: Int128 = 0
  var isSum = false

  func write(to html: inout HTML) {
    let start = scale.offset(from)
    let end = scale.offset(from + value)
    html.element(
      "svg",
      [
        "class": "row-bar", "viewBox": "0 0 100 1", "preserveAspectRatio": "none",
        "aria-hidden": "true", "focusable": "false",
      ]
    ) { html in
      guard value != 0 else { return }
      let width = max(abs(end - start), 40)
      html.element(
        "rect",
        [
          "class": isSum ? "marked" : value < 0 ? "below" : "bar",
          "x": PageScale.text(max(0, value < 0 ? start - width : start)), "y": "0",
          "width": PageScale.text(width), "height": "1",
        ]
      ) { _ in }
    }
  }
}

// MARK: - Scale

extension Amount {
  /// An amount for the eye alone, with a true minus sign.
  static func shown(micros: Int128, currency: Currency?) -> String {
    text(micros: micros, currency: currency).replacing("-", with: "−")
  }
}

/// A chart's scale from `low` to `high`, both multiples of a round step, with 0 on it. Integers only.
package struct PageScale {
  let low: Int128
  let high: Int128
  let step: Int128
  /// The value of one, as the reader sees it: a million for amounts in micros.
  let one: Int128

  /// The number of parts into which offsets divide the scale.
  static let parts: Int128 = 10_000
  /// More steps than this would crowd the axis.
  private static let stepsMax: Int128 = 4

  /// A scale for these values.
  /// - Parameters:
  ///   - unit: the smallest step.
  ///   - one: the value that is shown as 1.
  package init(_ values: [Int128], unit: Int128 = 1, one: Int128 = 1_000_000) {
    self.one = one
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

  /// A scale that ends at the values themselves, for bars without an axis.
  init(around values: [Int128]) {
    low = min(0, values.min() ?? 0)
    high = max(low + 1, max(0, values.max() ?? 0))
    step = high - low
    one = 1
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
  package func offset(_ value: Int128) -> Int {
    var (part, whole) = (value - low, high - low)
    // The product must fit; the lost precision is far below one part.
    while whole > Int128(1) << 100 { (part, whole) = (part >> 8, whole >> 8) }
    return Int(part * Self.parts / whole)
  }

  /// Parts of the scale in hundredths of it: `12.5` for 1,250 parts.
  static func text(_ parts: Int) -> String {
    let (whole, rest) = parts.quotientAndRemainder(dividingBy: 100)
    if rest == 0 { return "\(whole)" }
    return rest % 10 == 0 ? "\(whole).\(rest / 10)" : "\(whole).\(rest < 10 ? "0" : "")\(rest)"
  }

  /// The exact text of a tick, in the unit of the farthest from 0: `500`, `1.5 k`, `20 M`, `1.2 bn`.
  package func label(_ tick: Int128) -> String {
    let farthest = max(high, -low)
    let units: [(Int128, String)] = [
      (1_000_000_000_000, " tn"), (1_000_000_000, " bn"), (1_000_000, " M"), (1000, " k"), (1, ""),
    ]
    let (factor, suffix) = units.first { farthest >= $0.0 * one } ?? (1, "")
    // At most one decimal in thousands or more, because the steps are round.
    let micros = tick * (1_000_000 / one) / factor
    return tick == 0 ? "0" : Amount.shown(micros: micros, currency: nil) + suffix
  }
}
