// The text of one of Apple's reports: unpacked, in UTF-8, with LF at the end of lines (settlement rule S2).
import Base
package import Revenue

/// The text of a report, and the digest of the bytes that it was.
package struct SettlementText: Sendable {
  /// UTF-8 without a byte order mark; lines end with LF.
  package var text: [UInt8]
  /// SHA-256 of the unpacked bytes, in hex.
  package var sha256Hex: String
  /// The name of the file without its folders, which events and messages cite.
  package var name: String

  /// The limit of a file, and of what it unpacks to.
  private static let byteCountMax = 256 << 20

  /// Reads a file; `-` is standard input.
  package static func read(
    path: String, stop: StopFlag
  ) throws(DeclarationError) -> SettlementText {
    let source: String
    let bytes: [UInt8]
    do throws(Failure) {
      let file = try FileSource(path: path, stop: stop)
      source = DeclarationFile.source(path, file)
      bytes = try file.readAll(
        limit: byteCountMax, expecting: file.sizeBytes ?? 0, name: file.name)
    } catch { throw .input(error) }
    return try SettlementText(bytes: bytes, name: source)
  }

  /// The text of a file's bytes, compressed or not.
  package init(bytes: consuming [UInt8], name: String = "report") throws(DeclarationError) {
    self.name = name
    do throws(Failure) {
      if bytes.starts(with: [0x1F, 0x8B]) { bytes = try Self.unpacked(bytes, name: name) }
      let cause = bytes.isEmpty ? "is empty" : InputKind.report.objection(toFile: bytes)
      if let cause { throw Failure(operation: "read", object: name, cause: cause) }
    } catch { throw .input(error) }
    sha256Hex = bytes.withUnsafeBytes { SHA256.hash($0) }.hex
    do throws(AppleReportError) { text = try ReportEncoding.text(bytes) } catch {
      throw DeclarationError(error, source: name)
    }
  }

  private static func unpacked(_ bytes: [UInt8], name: String) throws(Failure) -> [UInt8] {
    let source = try GzipSource(PrefixedSource(bytes), name: name, allowsPadding: false)
    return try source.readAll(limit: byteCountMax, name: name)
  }

  /// The report that the text is.
  package func report(symbols: StringInterner) throws(DeclarationError) -> AppleReport {
    do throws(AppleReportError) {
      return try withText(text) { (text) throws(AppleReportError) in
        try AppleReport(parsing: text, symbols: symbols)
      }
    } catch { throw DeclarationError(error, source: name) }
  }
}

extension DeclarationError {
  /// A report that is refused.
  package init(_ error: AppleReportError, source: String) {
    let problem = DeclarationProblem(line: error.line, error.message)
    self = .lines(source: source, [problem], count: 1)
  }
}
