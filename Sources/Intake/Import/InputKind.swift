// Recognizes a file of a kind that a command does not read, so that one message says it, not one for each line.

/// What a command expects of a file.
package enum InputKind {
  /// An import file: one JSON object a line, perhaps compressed.
  case lines
  /// A file of an archive, other than a table in CSV.
  case archive
  case csv
  /// One of Apple's reports, unpacked.
  case report

  /// How much of a file is looked at.
  static let byteCountMax = 512
  /// A shorter file is too short for a signature.
  private static let byteCountMin = 4

  /// Why a file that begins with these bytes cannot be what is expected; nil if it may be.
  package func objection(toFile first: some Collection<UInt8>) -> String? {
    let first = Array(first.prefix(Self.byteCountMax))
    if self != .lines, first.starts(with: [0x1F, 0x8B]) {
      return self == .report
        ? "is compressed with gzip twice; unpack it" : "is compressed with gzip; unpack it"
    }
    if first.count >= Self.byteCountMin,
      let (_, kind, advice) = Self.signatures.first(where: { first.starts(with: $0.bytes) }),
      !(self == .report && kind == Self.utf16)
    {
      // A report that was saved again by another program is no longer Apple's.
      let isUseful = self != .report || advice == Self.unpack
      return "is \(kind); \(isUseful ? advice ?? need : need)"
    }
    if first.starts(with: "PK\u{3}\u{4}".utf8) {
      let text = String(decoding: first, as: UTF8.self)
      let isOpenDocument = text.contains("application/vnd.oasis")
      guard isOpenDocument || Self.officeParts.contains(where: { text.contains($0) }) else {
        return "is a zip archive; unpack it"
      }
      return "is an \(isOpenDocument ? "OpenDocument" : "Excel") file; \(saved)"
    }
    let text = first.starts(with: Self.byteOrderMark) ? first.dropFirst(3) : first[...]
    let start = text.drop { $0 <= 0x20 }
    switch start.first {
    case UInt8(ascii: "<"): return "is HTML or XML; \(need)"
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      return self == .csv || self == .report ? "is JSON; \(need)" : nil
    default:
      let isOther = self == .lines || self == .archive
      return isOther && Self.isHeader(start) ? "is CSV; \(table)" : nil
    }
  }

  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  private static let utf16 = "text in UTF-16"
  private static let unpack = "unpack it"

  /// How files of other kinds begin; without advice, the need is named.
  private static let signatures: [(bytes: [UInt8], kind: String, advice: String?)] = [
    ([0xFF, 0xFE], utf16, "save it in UTF-8"),
    ([0xFE, 0xFF], utf16, "save it in UTF-8"),
    ([0xD0, 0xCF, 0x11, 0xE0], "an old Excel or Word file", "save it as CSV in UTF-8"),
    (Array("%PDF".utf8), "a PDF file", nil),
    (Array("SQLite format 3".utf8), "an SQLite database", nil),
    ([0xFD, 0x37, 0x7A, 0x58, 0x5A], "compressed with xz", unpack),
    ([0x28, 0xB5, 0x2F, 0xFD], "compressed with zstd", unpack),
    (Array("BZh".utf8), "compressed with bzip2", unpack),
    ([0x37, 0x7A, 0xBC, 0xAF], "a 7z archive", unpack),
  ]
  /// Names of which one stands near the beginning of an Excel file.
  private static let officeParts = ["[Content_Types].xml", "_rels/", "docProps/", "xl/"]

  private var need: String {
    switch self {
    case .lines: "give one JSON object a line"
    case .archive: "give the files that docs/migration.md shows"
    case .csv: "give CSV"
    case .report: "give a report as Apple offers it for download"
    }
  }

  private var saved: String {
    switch self {
    case .csv: "save it as CSV"
    case .report: need
    case .lines, .archive: "save it as CSV, and \(table)"
    }
  }

  private var table: String { "read that with --from csv and --map" }

  /// Whether a text begins with the header of a table in CSV: names of plain characters between separators, and a
  /// whole line of them.
  private static func isHeader(_ text: ArraySlice<UInt8>) -> Bool {
    guard let end = text.firstIndex(where: { $0 == 0x0A || $0 == 0x0D }) else { return false }
    let line = text[..<end]
    let separators = line.count { $0 == 0x2C || $0 == 0x3B || $0 == 0x09 }
    return separators > 0
      && line.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || byte >= 0x80
          || " \",;\t_-.".utf8.contains(byte)
      }
  }
}
