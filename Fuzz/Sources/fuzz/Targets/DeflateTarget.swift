// DEFLATE streams whose content is changed.
@testable import Base
@testable import Ledger

extension FuzzTarget {
  static let deflate = FuzzTarget(
    name: "deflate", inputByteCountMax: 2048, words: ["\\n", "{\"seq\":", "\u{4}\u{0}"],
    seeds: {
      let line = Array("{\"seq\":1,\"data\":{\"user\":\"user-1\",\"price\":\"0.99\"}}\n".utf8)
      var content: [UInt8] = []
      for index in 0..<20 { content += line.dropLast() + [UInt8(0x30 + index % 10), 0x0A] }
      let forms: [(numbers: [UInt8], rest: [UInt8])] = [
        ([0, 3, 9, 40], content), ([9, 0, 0, 0], line), ([2, 200, 7, 0], content + content),
        ([255, 60, 20, 8], DeflateCheck.deflated(content, level: 6)),
        ([255, 1, 1, 1], DeflateCheck.deflated(line, level: 1)),
      ]
      return forms.map { $0.numbers + $0.rest }
    },
    check: { input in
      guard let (form, rest) = split(input), rest.count > 3 else { return }
      let numbers = (Int(rest[0]), Int(rest[1]), Int(rest[2]))
      let bytes = Array(rest.dropFirst(3))
      if form == 255 {
        DeflateCheck.stream(bytes, numbers)
      } else {
        DeflateCheck.content(bytes, level: Int32(form % 12) + 1, numbers)
      }
    })
}

private enum DeflateCheck {
  static func deflated(_ content: [UInt8], level: Int32) -> [UInt8] {
    guard let deflater = try? BlockDeflater(level: level) else { return [] }
    let deflated = content.withUnsafeBytes { deflater.deflate($0) }
    return withExtendedLifetime(deflated) { Array(deflated.bytes) }
  }

  /// A content of which every so many bytes some are replaced.
  private static func change(
    _ old: [UInt8], _ numbers: (kept: Int, removed: Int, added: Int)
  ) -> (new: [UInt8], edits: [ContentEdit]) {
    var new: [UInt8] = []
    var edits: [ContentEdit] = []
    var offset = 0
    while offset < old.count {
      let kept = min(numbers.kept, old.count - offset)
      new += old[offset..<offset + kept]
      offset += kept
      let removed = min(max(1, numbers.removed), old.count - offset)
      if removed == 0 { break }
      let added = old.suffix(numbers.added)
      edits.append(
        ContentEdit(old: offset..<offset + removed, new: new.count..<new.count + added.count))
      new += added
      offset += removed
    }
    return (new, edits)
  }

  private static func edited(
    _ stream: [UInt8], _ edits: [ContentEdit], oldByteCount: Int, _ new: [UInt8]
  ) -> ByteBuffer? {
    let result = ByteBuffer()
    let isEdited = stream.withUnsafeBytes { stream in
      new.withUnsafeBytes { new in
        DeflateEditor().edit(stream, edits, oldByteCount: oldByteCount, new: new, into: result)
      }
    }
    return isEdited ? result : nil
  }

  /// A stream that we made must give the new content.
  static func content(_ old: [UInt8], level: Int32, _ numbers: (Int, Int, Int)) {
    let (new, edits) = change(old, numbers)
    if new.isEmpty { return }
    // What can't be compressed is stored, and refused.
    guard
      let result = edited(deflated(old, level: level), edits, oldByteCount: old.count, new)
    else { return }
    let member = ByteBuffer()
    let place = [UInt8](repeating: 7, count: Frontier.byteCount(size: 1))
    guard let after = place.withUnsafeBytes({ Frontier(size: 1, bytes: $0) }) else { return }
    let isMade = new.withUnsafeBytes {
      MemberWriter(member).block(
        events: $0, eventCount: 1, deflated: result, frontierAfter: after,
        lastEventAtMs: 1_800_000_000_000)
    }
    require(isMade, "an edited block is no larger than a block may be")
    BlockCheck.inflates(new, member, 1)
  }

  /// Any bytes as a stream, of a content of any size.
  static func stream(_ bytes: [UInt8], _ numbers: (Int, Int, Int)) {
    let old = [UInt8](repeating: 0x61, count: 8 * numbers.0 + numbers.1)
    let (new, edits) = change(old, (numbers.0, numbers.1, numbers.2))
    guard let result = edited(bytes, edits, oldByteCount: old.count, new) else { return }
    require(result.count <= new.count + 64, "an edited stream has a largest size")
  }
}
