// Bar charts as SVG, drawn without scripts and without binary floating point.
import Revenue

/// Bars in time order, above and below a line at 0.
package struct BarChart {
  /// One bar.
  package struct Bar {
    /// Its name on the axis.
    let axisLabel: String
    /// What a pointer over it shows.
    let title: String
    let value: Int128
    /// Whether it stands out.
    let isMarked: Bool

    package init(axisLabel: String, title: String, value: Int128, isMarked: Bool) {
      self.axisLabel = axisLabel
      self.title = title
      self.value = value
      self.isMarked = isMarked
    }
  }

  /// Names the chart, as a screen reader says it.
  let title: String
  /// What it shows, in a sentence.
  let description: String
  /// The name of its elements, unique on the page.
  let id: String
  let bars: [Bar]
  /// The text of a tick; the scale's own if nil.
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
  /// Bars are this wide, of `slot`.
  private static let barWidth = 720
  /// A value that is not 0 shows at least this, in parts of the scale.
  private static let heightMin = 60
  private static let axisLabelsMax = 8

  /// Writes the chart, without a table.
  package func write(to html: inout HTML) {
    let scale = PageScale(bars.map(\.value), unit: isOfCounts ? 1 : 10_000)
    html.element("div", ["class": "plot"]) { html in
      html.element("div", ["class": "y", "aria-hidden": "true"]) { html in
        for tick in scale.ticks {
          html.element("span", text: isOfCounts ? String(tick) : scale.label(tick))
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
        let y = PageScale.text(Int(PageScale.parts) - scale.place(tick))
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
    let zero = scale.place(0)
    let place = scale.place(bar.value)
    let height = max(abs(place - zero), Self.heightMin)
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

/// The bar in a table's row: it repeats the number beside it, so it has no name of its own.
struct RowBar {
  let scale: PageScale
  let value: Int128

  func write(to html: inout HTML) {
    let zero = scale.place(0)
    let place = scale.place(value)
    html.element(
      "svg",
      [
        "class": "row-bar", "viewBox": "0 0 100 1", "preserveAspectRatio": "none",
        "aria-hidden": "true", "focusable": "false",
      ]
    ) { html in
      guard value != 0 else { return }
      let width = max(abs(place - zero), 40)
      html.element(
        "rect",
        [
          "class": value < 0 ? "below" : "bar",
          "x": PageScale.text(max(0, min(zero, value < 0 ? zero - width : zero))), "y": "0",
          "width": PageScale.text(width), "height": "1",
        ]
      ) { _ in }
    }
  }
}
