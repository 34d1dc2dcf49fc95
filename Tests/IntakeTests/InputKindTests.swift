// Files of a kind that a command does not read: one message in words, and no good file is taken for one.
import Intake
import TestSupport
import Testing

@Suite struct InputKindTests {
  private static let excel = "PK\u{3}\u{4}\u{14}\0\u{6}\0\u{8}\0\0\0!\0[Content_Types].xml"
  private static let openDocument =
    "PK\u{3}\u{4}\u{14}\0mimetypeapplication/vnd.oasis.opendocument.spreadsheet"

  @Test(
    "a wrong kind is named, with what to do",
    arguments: [
      (.lines, excel, "is an Excel file; save it as CSV, and read that with --from csv and --map"),
      (.csv, excel, "is an Excel file; save it as CSV"),
      (.csv, openDocument, "is an OpenDocument file; save it as CSV"),
      (.lines, "PK\u{3}\u{4}\u{14}\0uploads.ndjson", "is a zip archive; unpack it"),
      (.lines, "%PDF-1.7\n", "is a PDF file; give one JSON object a line"),
      (.archive, "%PDF-1.7\n", "is a PDF file; give the files that docs/migration.md shows"),
      (.csv, "<!DOCTYPE html>", "is HTML or XML; give CSV"),
      (.lines, "\u{FEFF}<?xml version='1.0'?>", "is HTML or XML; give one JSON object a line"),
      (.csv, " {\"price\":1}", "is JSON; give CSV"), (.csv, "[1]", "is JSON; give CSV"),
      (.csv, "SQLite format 3\0", "is an SQLite database; give CSV"),
      (
        .lines, "receipt,country_code\r\nAAAA,DE\r\n",
        "is CSV; read that with --from csv and --map"
      ),
      (.archive, "a;\"b c\"\n", "is CSV; read that with --from csv and --map"),
      (.lines, "BZh91AY", "is compressed with bzip2; unpack it"),
    ] as [(InputKind, String, String)])
  func wrongKind(_ kind: InputKind, _ text: String, _ expected: String) {
    expectEqual(kind.objection(toFile: text.utf8), expected)
  }

  @Test(
    arguments: [
      (.csv, [0x1F, 0x8B, 8], "is compressed with gzip; unpack it"),
      (.archive, [0x1F, 0x8B, 8], "is compressed with gzip; unpack it"),
      (.csv, [0xFF, 0xFE, 0x61, 0], "is text in UTF-16; save it in UTF-8"),
      (.lines, [0xD0, 0xCF, 0x11, 0xE0], "is an old Excel or Word file; save it as CSV in UTF-8"),
      (.lines, [0x1F, 0x8B, 8], nil), (.archive, [0x30, 0x82, 0, 0], nil), (.lines, [], nil),
      (.archive, [0xFF, 0xFE], nil),
    ] as [(InputKind, [UInt8], String?)])
  func bytes(_ kind: InputKind, _ bytes: [UInt8], _ expected: String?) {
    expectEqual(kind.objection(toFile: bytes), expected)
  }

  @Test(
    "what may be a good file, or one with bad lines, is read",
    arguments: [
      (.lines, "{\"receipt\":\"AAAA\"}\n"), (.lines, "nonsense\n"), (.lines, "a, b: {}\n"),
      (.lines, "\n\n{}"), (.lines, "[]\n"), (.lines, "a,b"), (.archive, "eyJh.eyJi.c2ln\n"),
      (.csv, "date,base,quote,rate\n"), (.csv, "Date, USD, JPY,\n"),
    ] as [(InputKind, String)])
  func goodKind(_ kind: InputKind, _ text: String) {
    expectEqual(kind.objection(toFile: text.utf8), nil)
  }
}
