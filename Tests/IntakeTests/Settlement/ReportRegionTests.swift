// The region of a report: by its kind, an option, the file's name, its currencies (settlement rule S5); and the same
// report in every encoding.
import Base
import Foundation
import Intake
import Revenue
import TestSupport
import Testing

@Suite struct ReportRegionTests {
  private static let header =
    "Start Date\tEnd Date\tSKU\tQuantity\tPartner Share\tExtended Partner Share\t"
    + "Partner Share Currency\tSale or Return\tProduct Type Identifier\tCountry Of Sale\t"
    + "Customer Price\tCustomer Currency\n"
  private static func row(_ currency: String) -> String {
    "08/31/2014\t09/27/2014\tprö\t1\t2\t2\t\(currency)\tS\tIA1\tDE\t3\t\(currency)\n"
  }
  private static let one = header + row("EUR") + row("EUR") + "Total_Rows\t2\n"
  private static let several = header + row("EUR") + row("USD") + "Total_Rows\t2\n"
  private static let detailed =
    "Start Date\t08/31/2014\nEnd Date\t09/27/2014\nTransaction Date\tSettlement Date\t"
    + header + "09/01/2014\t09/01/2014\t" + row("EUR") + "Country Of Sale\n"
  private static let overview =
    "Region (Currency),Earned,Total Owed,Exchange Rate,Proceeds,Bank Account Currency\n"
    + "A (EUR),1,1,1,1,EUR\n"

  private static func report(_ bytes: [UInt8]) throws -> AppleReport {
    try SettlementText(bytes: bytes).report(symbols: StringInterner(TextArena()))
  }

  private static func region(_ option: String?, _ name: String, _ text: String) throws -> String? {
    let report = try report(Array(text.utf8))
    do throws(Failure) {
      return try ReportRegion.region(option: option, fileName: name, report: report)
    } catch { return error.description }
  }

  private static let unknown =
    "neither its name nor its rows tell the region: name the region with --region"

  @Test(
    arguments: [
      ("EU", "a_JP.txt", one, "EU"), ("Z1", "a.txt", one, "Z1"), ("ZZ", "a.txt", several, "ZZ"),
      (nil, "85_0914_EU.txt", one, "EU"), (nil, "85_0914_EU.txt.gz", one, "EU"),
      (nil, "_ZZ.txt", one, "ZZ"), (nil, "a_Z1.txt", one, "Z1"), (nil, "a_JP.txt", several, "JP"),
      (nil, "a_eu.txt", several, "ZZ"), (nil, "aEU.txt", several, "ZZ"),
      (nil, "a_EU.csv", several, "ZZ"), (nil, "standard input", several, "ZZ"),
      (nil, "a_EUR.txt", several, "ZZ"), (nil, "a_EU.txt.txt", several, "ZZ"),
      (nil, "a_EU (1).txt", one, "read: a_EU (1).txt: " + unknown),
      (nil, "EU.txt", one, "read: EU.txt: " + unknown),
      (nil, "", one, "read: " + unknown),
      (nil, "a_EU.txt", detailed, "Z1"), ("EU", "a_EU.txt", detailed, "Z1"),
      (nil, "a_EU.txt", overview, nil), ("EU", "a", overview, nil),
    ] as [(String?, String, String, String?)])
  func aRegionIsToldOrAskedFor(
    _ option: String?, _ name: String, _ text: String, _ expected: String?
  ) throws {
    try expectEqual(Self.region(option, name, text), expected)
  }

  @Test(arguments: ["", "E", "eu", "EUR", "Z2", "1Z", "E\u{308}", "ÄU"])
  func anOptionThatIsNoRegionIsRefused(_ option: String) throws {
    for text in [Self.one, Self.detailed, Self.overview] {
      #expect(
        try Self.region(option, "a_EU.txt", text)?
          .hasSuffix(": is neither two capital letters nor Z1") == true)
    }
  }

  @Test func aReportIsTheSameInEveryEncoding() throws {
    let lines = Self.one.replacing("\n", with: "\r\n")
    let utf16 = Array(lines.utf16)
    let forms: [[UInt8]] = [
      Array(lines.utf8), Array(Self.one.replacing("\n", with: "\r").utf8),
      [0xEF, 0xBB, 0xBF] + Array(lines.utf8),
      [0xFF, 0xFE] + utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] },
      [0xFE, 0xFF] + utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] },
      lines.unicodeScalars.map { UInt8($0.value) }, Gzip.member(Array(lines.utf8)),
    ]
    for form in forms {
      let text = try SettlementText(bytes: form)
      expectEqual(String(decoding: text.text, as: UTF8.self), Self.one)
      try expectEqual(Self.report(form).rows, Self.report(Array(Self.one.utf8)).rows)
    }
  }

  @Test func noChangeOfBytesEndsTheReader() {
    var random = SeededRandom()
    print("seed \(random.seed)")
    let forms: [[UInt8]] = [
      Array(Self.one.utf8), Array(Self.detailed.utf8), Array(Self.overview.utf8),
      [0xFE, 0xFF] + Self.overview.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] },
      Gzip.member(Array(Self.one.utf8)),
    ]
    for _ in 0..<1000 {
      var bytes = random.pick(forms)
      for _ in 0...random.below(3) { bytes[random.below(bytes.count)] = random.bytes(count: 1)[0] }
      do throws(DeclarationError) {
        let text = try SettlementText(bytes: bytes)
        #expect(!text.text.contains(0x0D) && !text.text.contains(0), "seed \(random.seed)")
        #expect(String(validating: text.text, as: UTF8.self) != nil, "seed \(random.seed)")
        _ = try text.report(symbols: StringInterner(TextArena()))
      } catch { #expect(!error.description.isEmpty, "seed \(random.seed)") }
    }
  }
}
