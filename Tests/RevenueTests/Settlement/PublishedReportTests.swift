// Reports that were published: what they say, cut anywhere, and changed at random (settlement rules S2 to S6).
import Foundation
import Revenue
import TestSupport
import Testing

@Suite(.enabled(if: ReportText.folder != nil, "no ../shared/fixtures here"))
struct PublishedReportTests {
  private static let files = [
    "45545510_0914_CH.txt", "45545510_0914_EU.txt", "45545510_0914_JP.txt",
    "financial_report.csv",
  ]

  @Test(arguments: [
    (files[0], 4, 29, 33_150_000, 1..<5), (files[1], 6, 19, 206_890_000, 1..<7),
    (files[2], 2, 2, 179_000_000, 1..<3),
  ])
  func aFinancialReportIsReadToItsTotals(
    name: String, rows: Int, units: Int64, share: Int64, lines: Range<Int>
  ) throws {
    let read = try ReadReport(ReportText.published(name))
    expectEqual(read.report.kind, .financial)
    expectEqual(read.report.month?.name, "FY2014-P12")
    expectEqual(read.report.rows.count, rows)
    expectEqual(read.report.rows.reduce(0) { $0 + $1.units }, units)
    expectEqual(read.report.rows.reduce(0) { $0 + $1.shareMicros }, share)
    expectEqual(read.report.rowLines, lines)
    expectEqual(read.exceptions, [])
  }

  @Test func aReturnAndAGiftAreReadAsTheyStand() throws {
    let read = try ReadReport(ReportText.published(Self.files[1]))
    expectEqual(
      Array(read.rows[..<2]),
      [
        "1 R Example App 5 DE EUR EUR app -1 × 19990000, 12170000 -12170000 -",
        "2 S Example App 5 DE EUR EUR app 2 × 0, 0 0 -",
      ])
  }

  @Test func theOverviewIsReadToItsPayment() throws {
    let read = try ReadReport(ReportText.published(Self.files[3]))
    expectEqual(read.report.kind, .overview)
    expectEqual(read.report.month?.name, "FY2014-P12")
    expectEqual(read.report.rowLines, 2..<11)
    expectEqual(read.exceptions, [])
    let list = try #require(read.report.lists.first)
    expectEqual(read.report.lists.count, 1)
    expectEqual(list.payment?.micros, 234_580_000)
    expectEqual(list.payee, "Paid to FICTIONAL BANK -****1299")
    expectEqual(
      read.paymentRows.last,
      "3 Japan (JPY) JPY: 2 units, 0 + 179000000 (179000000) + 0 + 0 + -37000000 = 142000000 "
        + "at 0.00817: 1160000 EUR")
  }

  /// An overview without its end is one whose list is carried forward.
  @Test(arguments: files.prefix(3))
  func cutAnywhereAReportIsRefusedOrWhole(name: String) throws {
    let text = try ReportText.published(name)
    let whole = try ReadReport(text).all
    for count in 0..<text.count {
      let cut = Array(text[..<count])
      if let read = try? ReadReport(cut) { expectEqual(read.all, whole, "\(count) bytes") }
    }
  }

  @Test func anOverviewCutBeforeItsPaymentIsRefusedOrCarriedForward() throws {
    let text = try ReportText.published(Self.files[3])
    for count in 0..<text.count {
      guard let read = try? ReadReport(Array(text[..<count])) else { continue }
      let list = read.report.lists[0]
      #expect(list.payment == nil || list.rows.count == 3, "\(count) bytes")
    }
  }

  @Test(arguments: files)
  func noChangeOfBytesEndsTheReader(name: String) throws {
    let text = try ReportText.published(name)
    var random = SeededRandom()
    print("seed \(random.seed)")
    let alphabet = Array("\t\n,\"():-+.0019SRIAEURCHF/TotalC ".utf8) + [0xC3, 0xFF, 0]
    for _ in 0..<1000 {
      var bytes = text
      for _ in 0...random.below(4) {
        let place = random.below(bytes.count)
        switch random.below(3) {
        case 0: bytes[place] = random.pick(alphabet)
        case 1: bytes.insert(random.pick(alphabet), at: place)
        default: bytes.removeSubrange(place..<min(bytes.count, place + 1 + random.below(40)))
        }
        if bytes.isEmpty { bytes = [0x41] }
      }
      do throws(AppleReportError) {
        let read = try ReadReport(bytes)
        #expect(
          !read.report.rows.isEmpty || !read.report.lists.isEmpty, "seed \(random.seed)")
      } catch { #expect(!error.message.isEmpty, "seed \(random.seed)") }
    }
  }
}
