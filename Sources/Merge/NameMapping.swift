// Makes an event name what it names as the ledger does that several are put together to; all else stays byte by byte.
import Base
package import Ledger
import Revenue

/// What is known of ledgers whose events are put in one order.
package protocol SourceNames {
  var families: AppFamilies { get }
  /// What precedes the user identifiers of a ledger.
  func userPrefix(of source: Int) -> String?
  /// Where an event of a ledger stands; nil if it is not there.
  func position(of position: Position, in source: Int) -> Position?
  /// The position that replaces that of an erasure in the names of what it erased; nil if they stay.
  func namingErasure(_ erasure: Position, in source: Int) -> Position?
  /// The SHA-256, in hex, of a receipt of which an upload has lost it.
  func receiptDigest(of receiptID: String, in source: Int) -> String?
}

/// A position that no event has.
let nowhere: Position = 999_999_999_999_999_999

/// Maps the members of events.
package struct NameMapping<Names: SourceNames> {
  private let names: Names

  package init(_ names: Names) { self.names = names }

  private struct Replacement {
    let range: Range<Int>
    let bytes: [UInt8]
  }

  /// The data with other values of the members that are mapped. Of malformed data the members before the fault are
  /// mapped, as only those can be read.
  package func mapped(_ line: EventLine, _ type: EventType, of source: Int) -> [UInt8] {
    var replacements: [Replacement] = []
    var identity = UploadIdentity()
    var cursor = JSONCursor(line.data)
    do throws(JSONError) {
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        let mapping = type.mapping(of: key)
        let start = cursor.offset
        let value = try cursor.readRaw()
        let range = start..<cursor.offset
        switch mapping {
        case .kept: break
        case .position:
          replacements.append(
            Replacement(range: range, bytes: position(value, named: line.position, in: source)))
        case .family: identity.family = (range, Self.text(value))
        case .receiptID, .uploadID: identity.id = (range, Self.text(value))
        case .receiptDigest: identity.digest = Self.text(value)
        case .user:
          replacements.append(Replacement(range: range, bytes: user(value, in: source)))
        }
      }
    } catch {}
    replacements += identities(identity, line, type, of: source)
    replacements.sort { $0.range.lowerBound < $1.range.lowerBound }
    var data: [UInt8] = []
    data.reserveCapacity(line.data.count + 64)
    var copied = 0
    for replacement in replacements {
      data += line.data[copied..<replacement.range.lowerBound]
      data += replacement.bytes
      copied = replacement.range.upperBound
    }
    data += line.data[copied...]
    return line.isRedacted ? renamed(data, in: source) : data
  }

  /// The content of a JSON string without escapes, as ids are written; nil for anything else.
  private static func text(_ value: JSONBytes) -> String? {
    guard value.count >= 2, value.first == UInt8(ascii: "\""), !value.contains(0x5C) else {
      return nil
    }
    return String(decoding: value.dropFirst().dropLast(), as: UTF8.self)
  }

  /// Where an earlier event stands in the merged ledger. A position without an event gets one without an event.
  private func position(
    _ value: JSONBytes, named position: Position, in source: Int
  ) -> [UInt8] {
    guard let named = Int(String(decoding: value, as: UTF8.self)), named >= 0 else {
      return Array(value)
    }
    let merged = named < position ? names.position(of: named, in: source) : nil
    return Array("\(merged ?? nowhere)".utf8)
  }

  private func user(_ value: JSONBytes, in source: Int) -> [UInt8] {
    guard let prefix = names.userPrefix(of: source), value.count > 2,
      value.first == UInt8(ascii: "\""),
      !ErasedUser.isName(JSONBytes(rebasing: value[1..<value.count - 1]))
    else { return Array(value) }
    var writer = JSONWriter()
    writer.string(prefix)
    return writer.bytes.dropLast() + Array(value.dropFirst())
  }

  // MARK: Ids that follow from an app family

  private struct UploadIdentity {
    var family: (range: Range<Int>, id: String?)?
    var id: (range: Range<Int>, text: String?)?
    var digest: String?
  }

  private func identities(
    _ identity: UploadIdentity, _ line: EventLine, _ type: EventType, of source: Int
  ) -> [Replacement] {
    guard let family = identity.family, let id = family.id else { return [] }
    let mergedID = names.families.mergedID(of: id)
    if mergedID == id { return [] }
    var replacements = [Replacement(range: family.range, bytes: Self.quoted(mergedID))]
    guard let upload = identity.id, let known = upload.text, let old = UUID16(id),
      let new = UUID16(mergedID)
    else { return replacements }
    var mapped: String?
    switch type {
    case .receiptUploaded:
      mapped = (identity.digest ?? names.receiptDigest(of: known, in: source)).flatMap {
        Self.receiptID($0, known, from: old, to: new)
      }
    case .transactionsReceived: mapped = Self.uploadID(line, known, from: old, to: new)
    default: break
    }
    if let mapped {
      replacements.append(Replacement(range: upload.range, bytes: Self.quoted(mapped)))
    }
    return replacements
  }

  private static func quoted(_ text: String) -> [UInt8] { Array("\"\(text)\"".utf8) }

  /// A receipt's id in another app family; nil if its id was not made from its own family.
  private static func receiptID(
    _ digestHex: String, _ known: String, from old: UUID16, to new: UUID16
  ) -> String? {
    guard let digest = Array(digestHex.utf8).withUnsafeBytes({ SHA256Digest(hex: $0) }) else {
      return nil
    }
    return digest.withUnsafeBytes { name in
      UUID16.named(name, in: old).description == known
        ? UUID16.named(name, in: new).description : nil
    }
  }

  /// The id of an upload of signed transactions in another family; nil as above, or if its objects are reduced.
  private static func uploadID(
    _ line: EventLine, _ known: String, from old: UUID16, to new: UUID16
  ) -> String? {
    guard
      let view = try? TransactionsReceivedView(data: line.data, isRedacted: line.isRedacted),
      !view.objects.contains(where: \.isReduced)
    else { return nil }
    let texts = view.objects.map(\.text)
    guard TransactionsReceived.uploadID(of: texts, in: old).description == known else {
      return nil
    }
    return TransactionsReceived.uploadID(of: texts, in: new).description
  }

  // MARK: Names of erased users

  /// What was kept, with the names that erasures have in the merged ledger.
  private func renamed(_ kept: [UInt8], in source: Int) -> [UInt8] {
    var result: [UInt8] = []
    var copied = 0
    ErasedNames.forEach(in: kept) { erasure, digits in
      guard let merged = names.namingErasure(erasure, in: source) else { return }
      result += kept[copied..<digits.lowerBound]
      result += "\(merged)".utf8
      copied = digits.upperBound
    }
    return result + kept[copied...]
  }
}

/// Finds the names of erased users, tokens and accounts in what an erasure kept.
enum ErasedNames {
  private static let start = Array("\"(redacted ".utf8)

  /// Passes on the position of each name's erasure, and where its digits stand.
  static func forEach(in kept: [UInt8], _ body: (Position, Range<Int>) -> Void) {
    kept.withUnsafeBytes { bytes in
      var index = 0
      while let quote = bytes[index...].firstIndex(of: UInt8(ascii: "\"")) {
        index = quote + 1
        guard bytes[quote...].starts(with: start),
          let end = bytes[index...].firstIndex(of: UInt8(ascii: "\"")),
          let erasure = ErasedUser.erasure(of: JSONBytes(rebasing: bytes[index..<end]))
        else { continue }
        let first = quote + start.count
        let digits = bytes[first..<end].prefix { 0x30...0x39 ~= $0 }
        body(erasure, first..<digits.endIndex)
        index = end + 1
      }
    }
  }
}
