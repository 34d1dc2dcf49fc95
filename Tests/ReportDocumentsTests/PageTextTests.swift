// Texts and numbers of a page: no data becomes markup, and every number keeps its digits.
import Base
import Foundation
import Revenue
import TestSupport
import Testing

import ReportDocuments

@Suite struct PageTextTests {
  private static func written(_ body: (inout HTML) -> Void) -> String {
    var html = HTML()
    body(&html)
    return String(decoding: html.bytes, as: UTF8.self).replacing("<!DOCTYPE html>", with: "")
  }

  @Test(arguments: [
    ("a & b", "a &amp; b"), ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    ("\" onload='x'", "&quot; onload=&#39;x&#39;"), ("</td></table>", "&lt;/td&gt;&lt;/table&gt;"),
    ("a\u{202E}cod.exe", #"a\u{202E}cod.exe"#), ("a\u{2066}b", #"a\u{2066}b"#),
    ("line\nline\r\ttab", #"line\nline\r\ttab"#), ("\u{0}\u{1B}[2J", #"\u{0}\u{1B}[2J"#),
    ("\u{FEFF}\u{200B}\u{AD}", #"\u{FEFF}\u{200B}\u{AD}"#), ("\u{85}\u{2028}", #"\u{85}\u{2028}"#),
    ("Zoë 👩‍👩‍👧 日本", "Zoë 👩‍👩‍👧 日本"), ("&lt;", "&amp;lt;"), ("<!--", "&lt;!--"),
  ])
  func `A text is escaped in elements and attributes`(text: String, shown: String) {
    expectEqual(
      Self.written { $0.element("b", ["title": text], text: text) },
      "<b title=\"\(shown)\">\(shown)</b>")
  }

  /// The style sheet draws a true minus sign; what is copied is the hyphen.
  private static let minus = #"<b class="sign"><i>-</i></b>"#

  @Test(arguments: [
    ("0", 0, "0"), ("12", 0, "12"), ("123", 0, "123"), ("1234", 0, "1<span>234</span>"),
    ("-1234567.89", 2, minus + "1<span>234</span><span>567</span>.89"), ("+5.00", 2, "+5.00"),
    ("1588.332459", 2, "1<span>588</span>.33<small>2459</small>"), ("-0.50", 2, minus + "0.50"),
    ("27.554921", 0, "27<small>.554921</small>"), ("1.2345", 3, "1.234<small>5</small>"),
    (
      "1234567890123456789012345678901234567.89", 2,
      "1" + (0..<12).map { _ in "" }.joined()
        + "<span>234</span><span>567</span><span>890</span><span>123</span><span>456</span>"
        + "<span>789</span><span>012</span><span>345</span><span>678</span><span>901</span>"
        + "<span>234</span><span>567</span>.89"
    ),
  ])
  func `A number is grouped, and its minus drawn, for the eye alone`(
    text: String, digits: Int, markup: String
  ) {
    expectEqual(Self.written { $0.number(text, minorDigits: digits) }, markup)
    expectEqual(markup.replacing(/<[^>]*>/, with: ""), text)
  }

  @Test(
    arguments: [
      (1, 3, "33.3 %"), (1, 1, "100.0 %"), (0, 5, "0.0 %"), (-1, 4, "−25.0 %"), (1, 2000, "0.0 %"),
      (3, 2000, "0.2 %"), (5, 2000, "0.2 %"), (7, 2000, "0.4 %"), (-1, 100_000, "0.0 %"),
    ] as [(Int128, Int128, String)])
  func `A share is exact, rounded half to even once`(part: Int128, whole: Int128, text: String) {
    expectEqual(PagePercent.text(part, of: whole), text)
  }

  @Test func `A share of nothing, or of a loss, is none`() {
    #expect(PagePercent.text(1, of: 0) == nil)
    #expect(PagePercent.text(1, of: -5) == nil)
    #expect(PagePercent.text(.max, of: .max) == nil)
  }

  @Test(
    arguments: [
      (100, 150, "+50.0 %"), (100, 50, "−50.0 %"), (100, 100, "±0.0 %"), (-100, 100, "+200.0 %"),
      (100, -100, "−200.0 %"), (-100, -150, "−50.0 %"), (0, 5, nil), (1, 1_000_000, nil),
    ] as [(Int128, Int128, String?)])
  func `A change has a sign, and none where it would say nothing`(
    before: Int128, after: Int128, text: String?
  ) {
    expectEqual(PagePercent.change(from: before, to: after), text)
  }

  @Test func `The policy allows exactly the style sheet of the page`() {
    let sheet = PageStyle.sheet.description
    #expect(PageStyle.source.hasPrefix("sha256-"))
    expectEqual(PageStyle.source.utf8.count, 7 + 44)
    // The style sheet must not close its element or load anything.
    #expect(!sheet.contains("<"))
    #expect(!sheet.contains("url("))
    #expect(!sheet.contains("@import"))
  }

  /// The colours of the style sheet by name, light, dark and printed.
  private static let schemes: [[Substring: Substring]] = PageStyle.sheet.description
    .matches(of: /:root\{([^}]*)\}/).map { scheme in
      let colours = scheme.1.matches(of: /--([a-z]+):#([0-9a-f]+)/).map { ($0.1, $0.2) }
      return Dictionary(uniqueKeysWithValues: colours)
    }

  /// WCAG's relative luminance of `fff` or `13161a`.
  private static func luminance(_ colour: Substring) throws -> Double {
    let digits = colour.count == 3 ? colour.flatMap { [$0, $0] } : Array(colour)
    let parts = try (0..<3).map { index in
      let part = try #require(Int(String(digits[2 * index...2 * index + 1]), radix: 16))
      let share = Double(part) / 255
      return share <= 0.04045 ? share / 12.92 : pow((share + 0.055) / 1.055, 2.4)
    }
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
  }

  /// Texts, then the bars of charts, the line at 0 and the shadow of a table that goes on.
  @Test(
    arguments: [
      ("ink", "paper", 4.5), ("ink", "wash", 4.5), ("soft", "paper", 4.5), ("accent", "paper", 4.5),
      ("minus", "paper", 4.5), ("bar", "paper", 3), ("quiet", "paper", 3), ("soft", "paper", 3),
    ] as [(Substring, Substring, Double)])
  func `Texts and marks stand out in every scheme`(
    front: Substring, back: Substring, ratioMin: Double
  ) throws {
    expectEqual(Self.schemes.count, 3)
    for scheme in Self.schemes {
      let (one, other) = try (
        Self.luminance(#require(scheme[front])), Self.luminance(#require(scheme[back]))
      )
      let ratio = (max(one, other) + 0.05) / (min(one, other) + 0.05)
      #expect(ratio >= ratioMin, "\(front) on \(back) of \(scheme)")
    }
  }

  @Test(arguments: ExceptionType.allCases)
  func `Every exception is explained in sentences`(type: ExceptionType) {
    let words = ExceptionWords(type)
    #expect(!words.title.isEmpty && words.title.first?.isUppercase == true)
    #expect(words.meaning.hasSuffix("."))
    #expect(words.action.hasSuffix("."))
    #expect(!words.title.contains("_") && !words.meaning.contains("_"))
  }

  @Test func `No two exceptions have the same words`() {
    let titles = ExceptionType.allCases.map { ExceptionWords($0).title }
    expectEqual(Set(titles).count, titles.count)
  }

  @Test func `Every source of a price and of evidence has words of its own`() {
    let bases = PriceBasis.allCases.map { CodeWords(basis: "\($0.word)") }
    let trusts = ReplyTrust.allCases.map { CodeWords(trust: "\($0.word)") }
    for words in bases + trusts { #expect(!words.meaning.isEmpty, "\(words.title)") }
    expectEqual(Set(bases.map(\.title)).count, bases.count)
    expectEqual(CodeWords(basis: "new_basis").title, "new_basis")
  }

  @Test func `Every country has a name`() {
    for country in Country.all { #expect(CountryNames.name("\(country)") != nil, "\(country)") }
    expectEqual(CountryNames.name("DE"), "Germany")
    expectEqual(CountryNames.name("ZZ"), "Country unknown")
    #expect(CountryNames.name("Q1") == nil)
  }
}
