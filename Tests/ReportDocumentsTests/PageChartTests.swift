// Charts: round scales around all values, and bars that stay inside them.
import Revenue
import TestSupport
import Testing

import ReportDocuments

@Suite struct PageChartTests {
  @Test(
    arguments: [
      ([0], [1, 0]), ([3], [3, 2, 1, 0]), ([10], [10, 5, 0]), ([100], [100, 50, 0]),
      ([-10], [0, -5, -10]), ([7, -3], [10, 5, 0, -5]), ([], [1, 0]), ([1, -1], [1, 0, -1]),
      ([1000, 1], [1000, 500, 0]),
    ] as [([Int128], [Int128])])
  func `A scale has round steps, few of them, and 0 among them`(values: [Int128], ticks: [Int128]) {
    expectEqual(PageScale(values).ticks, ticks)
  }

  @Test func `Every value is on its scale, whatever its size`() {
    var random = SeededRandom()
    for _ in 0..<2000 {
      let values = (0..<Int.random(in: 1...5, using: &random)).map { _ in
        Int128.random(in: -(1 << 120)...(1 << 120), using: &random)
          >> Int.random(in: 0...119, using: &random)
      }
      let scale = PageScale(values, unit: 10_000)
      #expect((2...6).contains(scale.ticks.count), "seed \(random.seed): \(values)")
      #expect(scale.ticks.contains(0), "seed \(random.seed): \(values)")
      for value in values {
        #expect(
          (0...10_000).contains(scale.offset(value)), "seed \(random.seed): \(value) of \(values)")
      }
    }
  }

  @Test(
    arguments: [
      (500_000_000, "500"), (1_000_000_000, "1 k"), (2_000_000_000_000, "2 M"), (20_000, "0.02"),
      (5_000_000_000_000_000, "5 bn"), (7_000_000_000_000_000_000, "7 tn"),
    ] as [(Int128, String)])
  func `Ticks are short`(step: Int128, label: String) {
    let scale = PageScale([step], unit: step)
    expectEqual(scale.label(step), label)
  }

  @Test(
    arguments: [
      (1_450, ["1.5 k", "1 k", "0.5 k", "0"]),
      (340_000, ["400 k", "300 k", "200 k", "100 k", "0"]),
      (1_150_000_000, ["1.5 bn", "1 bn", "0.5 bn", "0"]), (900, ["1 k", "0.5 k", "0"]),
      (700, ["800", "600", "400", "200", "0"]),
      (-1_900_000, ["0", "−0.5 M", "−1 M", "−1.5 M", "−2 M"]),
    ] as [(Int128, [String])])
  func `An axis has one unit and at most five ticks, of amounts as of counts`(
    value: Int128, labels: [String]
  ) {
    let counts = PageScale([value], one: 1)
    expectEqual(counts.ticks.map(counts.label), labels)
    let amounts = PageScale([value * 1_000_000], unit: 10_000)
    expectEqual(amounts.ticks.map(amounts.label), labels)
  }

  private static func markup(_ bars: [BarChart.Bar]) -> String {
    var html = HTML()
    BarChart(title: "T", description: "D", id: "i", bars: bars).write(to: &html)
    return String(decoding: html.bytes, as: UTF8.self)
  }

  private static func bar(_ value: Int128, _ title: String = "") -> BarChart.Bar {
    BarChart.Bar(axisLabel: "1", title: title, value: value, isMarked: false)
  }

  @Test func `A chart has a title, a description and a role, and no style of its own`() {
    let markup = Self.markup([Self.bar(5_000_000, "<1 & 2>")])
    #expect(markup.contains(#"role="img" aria-labelledby="i-title i-text""#))
    #expect(markup.contains(#"<title id="i-title">T</title>"#))
    #expect(markup.contains("<title>&lt;1 &amp; 2&gt;</title>"))
    #expect(!markup.contains("style="))
  }

  @Test func `Bars rise from the line at 0, or hang from it; a small one can still be seen`() {
    let markup = Self.markup([
      Self.bar(100_000_000), Self.bar(-100_000_000), Self.bar(1), Self.bar(0),
    ])
    #expect(
      markup.contains(#"<rect class="bar" x="1.40" y="0" width="7.20" height="50">"#)
        || markup.contains(#"<rect class="bar" x="1.4" y="0" width="7.2" height="50">"#))
    #expect(markup.contains(#"class="below""#))
    #expect(markup.contains(#"height="0.6""#))
    expectEqual(markup.components("<rect"), 3)
  }

  @Test func `A chart without bars is still a drawing`() {
    #expect(Self.markup([]).contains("<svg"))
  }
}

extension String {
  /// How often a text occurs.
  fileprivate func components(_ text: String) -> Int { split(separator: text).count - 1 }
}
