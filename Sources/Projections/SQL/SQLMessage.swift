// SQLite's messages about a statement, without what the statement says.
import CSQLite

/// A message that shows nothing of the statement but keywords, names of the schema and functions: a statement may name
/// a user, and a message may end in a log.
struct SQLMessage {
  /// The message as it may be shown.
  let shown: String
  /// The name that the message calls unknown; not to be shown.
  let unknownName: String?

  /// - Parameter known: the names of tables, views and columns.
  init(_ message: String, of sql: String, known: [String]) {
    unknownName = ["no such table: ", "no such column: ", "no such function: "]
      .first(where: message.hasPrefix)
      .map { String(message.dropFirst($0.count)) }
      .map { name in name.split(separator: ".").last.map(String.init) ?? name }
    var text = message
    for prefix in Self.namePrefixes where message.hasPrefix(prefix) {
      // The name may be a text that was put in the wrong quotes.
      text = String(prefix.dropLast(2))
    }
    shown = Self.hiding(Self.words(of: sql, known: Set(known.map { $0.lowercased() })), in: text)
  }

  /// Messages that end with a name of the statement.
  private static let namePrefixes = [
    "no such table: ", "no such column: ", "no such function: ", "ambiguous column name: ",
    "unrecognized token: ", "no such collation sequence: ", "no such index: ",
    "duplicate WITH table name: ", "circular reference: ", "no such window: ",
  ]

  /// The words and quoted texts of a statement, but keywords and known names, longest first.
  private static func words(of sql: String, known: Set<String>) -> [[UInt8]] {
    var found: Set<[UInt8]> = []
    let bytes = Array(sql.utf8)
    var place = 0
    while place < bytes.count {
      let first = bytes[place]
      if let quote = closingQuote(first) {
        let end = bytes[(place + 1)...].firstIndex(of: quote) ?? bytes.endIndex
        found.insert(Array(bytes[(place + 1)..<end]))
      }
      guard isOfWord(first) else {
        place += 1
        continue
      }
      let word = Array(bytes[place...].prefix(while: isOfWord))
      place += word.count
      let text = String(decoding: word, as: UTF8.self)
      if !known.contains(text.lowercased()), !isKeyword(word) { found.insert(word) }
    }
    found.remove([])
    return found.sorted { $0.count > $1.count }
  }

  private static func isKeyword(_ word: [UInt8]) -> Bool {
    word.withUnsafeBytes { raw in
      guard let start = raw.baseAddress?.assumingMemoryBound(to: CChar.self) else { return false }
      return sqlite3_keyword_check(start, Int32(word.count)) != 0
    }
  }

  private static func closingQuote(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): byte
    case UInt8(ascii: "["): UInt8(ascii: "]")
    default: nil
    }
  }

  private static func isOfWord(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x5F, 0x24, 0x80...: true
    default: false
    }
  }

  /// The text with `…` for each of these words.
  private static func hiding(_ words: [[UInt8]], in text: String) -> String {
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    var place = 0
    while place < bytes.count {
      let isStart = place == 0 || !isOfWord(bytes[place - 1]) || !isOfWord(bytes[place])
      let found = isStart ? words.first { isWord($0, at: place, of: bytes) } : nil
      guard let found else {
        result.append(bytes[place])
        place += 1
        continue
      }
      result += Array("…".utf8)
      place += found.count
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func isWord(_ word: [UInt8], at place: Int, of bytes: [UInt8]) -> Bool {
    guard bytes[place...].starts(with: word), let last = word.last else { return false }
    let end = place + word.count
    return end == bytes.count || !isOfWord(last) || !isOfWord(bytes[end])
  }
}
