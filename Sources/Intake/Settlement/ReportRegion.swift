// The region of a report, which the file itself does not state (settlement rule S5).
package import Base
package import Revenue

/// A region of Apple's financial reports: two capital letters, or `Z1`: all regions by transaction; `ZZ`: all regions
/// in one file.
package enum ReportRegion {
  private static let detailed = "Z1"
  private static let single = "ZZ"

  /// The region of a report; nil for an overview, which is of all regions.
  /// - Parameters:
  ///   - option: what the user said. It holds for financial reports.
  ///   - fileName: a name such as `85_0914_EU.txt`, perhaps with `.gz`, tells the region.
  package static func region(
    option: String?, fileName: String, report: AppleReport
  ) throws(Failure) -> String? {
    if let option, !isValid(option) {
      throw Failure(
        .usage, operation: "read option", object: "--region \(PrintableText.shortened(option))",
        cause: "is neither two capital letters nor Z1")
    }
    switch report.kind {
    case .overview: return nil
    case .detailed: return detailed
    case .financial: break
    }
    if let region = option ?? region(in: fileName) { return region }
    let first = report.rows.first?.shareCurrency
    if report.rows.contains(where: { $0.shareCurrency != first }) { return single }
    throw Failure(
      operation: "read", object: fileName,
      cause: "neither its name nor its rows tell the region: name the region with --region")
  }

  /// Two capital letters, or `Z1`.
  package static func isValid(_ region: String) -> Bool {
    region == detailed
      || region.utf8.count == 2 && region.utf8.allSatisfy { (0x41...0x5A).contains($0) }
  }

  /// `EU` in `85_0914_EU.txt` and `85_0914_EU.txt.gz`.
  private static func region(in fileName: String) -> String? {
    var name = fileName[...]
    if name.hasSuffix(".gz") { name.removeLast(3) }
    guard name.hasSuffix(".txt") else { return nil }
    name.removeLast(4)
    let region = String(name.suffix(2))
    return name.dropLast(2).hasSuffix("_") && isValid(region) ? region : nil
  }
}
