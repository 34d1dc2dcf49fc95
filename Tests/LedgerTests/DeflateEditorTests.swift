// Contents that are changed in a DEFLATE stream, checked by zlib, which made the streams.
import CZlib
import Ledger
import TestSupport
import Testing

@Suite("Changing what a DEFLATE stream holds")
struct DeflateEditorTests {
  /// A content, and what becomes of it.
  private struct Change {
    var old: [UInt8] = []
    var new: [UInt8] = []
    var edits: [ContentEdit] = []

    mutating func keep(_ bytes: [UInt8]) {
      old += bytes
      new += bytes
    }

    mutating func replace(_ bytes: [UInt8], by others: [UInt8]) {
      edits.append(
        ContentEdit(
          old: old.count..<old.count + bytes.count, new: new.count..<new.count + others.count))
      old += bytes
      new += others
    }
  }

  private enum Material: CaseIterable {
    case lines, noise, oneByte, twoBytes

    func piece(_ random: inout SeededRandom) -> [UInt8] {
      switch self {
      case .lines:
        let digest = random.bytes(count: 24).map { String($0, radix: 16) }.joined()
        return Array(
          """
          {"seq":\(random.below(100_000)),"type":"receipt.uploaded","digest":"\(digest)",\
          "data":{"user":"user-\(random.below(9))","country":"DE","price":"\(random.below(99)).99"}}

          """.utf8)
      case .noise: return random.bytes(count: 1 + random.below(300))
      case .oneByte: return Array(repeating: 0x61, count: 1 + random.below(700))
      case .twoBytes: return (0..<1 + random.below(400)).map { _ in UInt8(0x30 + random.below(2)) }
      }
    }
  }

  private static func change(
    _ material: Material, pieceCount: Int, editPercent: Int, _ random: inout SeededRandom
  ) -> Change {
    var change = Change()
    for _ in 0..<pieceCount {
      let piece = material.piece(&random)
      guard random.chance(percent: editPercent) else {
        change.keep(piece)
        continue
      }
      switch random.below(4) {
      case 0: change.replace(piece, by: [])
      case 1: change.replace(piece, by: material.piece(&random))
      case 2: change.replace(piece, by: Array(piece.prefix(random.below(piece.count) + 1)))
      default: change.replace(piece, by: random.bytes(count: random.below(90)))
      }
    }
    return change
  }

  /// A raw stream that zlib makes.
  private static func deflated(_ content: [UInt8], level: Int32, strategy: Int32) -> [UInt8] {
    var stream = z_stream()
    deflateInit2_(
      &stream, level, Z_DEFLATED, -15, 8, strategy, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    defer { deflateEnd(&stream) }
    var result = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(content.count))) + 64)
    var content = content
    let status = content.withUnsafeMutableBufferPointer { input in
      result.withUnsafeMutableBufferPointer { output in
        (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
        (stream.next_out, stream.avail_out) = (output.baseAddress, UInt32(output.count))
        return CZlib.deflate(&stream, Z_FINISH)
      }
    }
    #expect(status == Z_STREAM_END)
    return Array(result.prefix(Int(stream.total_out)))
  }

  /// The content of a raw stream as zlib reads it; nil if it is not exactly one whole stream.
  private static func inflated(_ bytes: [UInt8], byteCountMax: Int) -> [UInt8]? {
    var stream = z_stream()
    inflateInit2_(&stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    defer { inflateEnd(&stream) }
    var result = [UInt8](repeating: 0, count: byteCountMax + 1)
    var bytes = bytes
    let status = bytes.withUnsafeMutableBufferPointer { input in
      result.withUnsafeMutableBufferPointer { output in
        (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
        (stream.next_out, stream.avail_out) = (output.baseAddress, UInt32(output.count))
        return CZlib.inflate(&stream, Z_FINISH)
      }
    }
    guard status == Z_STREAM_END, stream.avail_in == 0 else { return nil }
    return Array(result.prefix(Int(stream.total_out)))
  }

  private static func edited(
    _ stream: [UInt8], _ change: Change, _ editor: DeflateEditor = DeflateEditor()
  ) -> [UInt8]? {
    let result = ByteBuffer()
    let isEdited = stream.withUnsafeBytes { stream in
      change.new.withUnsafeBytes { new in
        editor.edit(stream, change.edits, oldByteCount: change.old.count, new: new, into: result)
      }
    }
    return withExtendedLifetime(result) { isEdited ? Array(result.bytes) : nil }
  }

  private static let strategies = [Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED]

  @Test("Any content, any change: zlib reads the new content", arguments: 0..<16)
  func changes(round: Int) throws {
    var random = SeededRandom()
    let editor = DeflateEditor()
    for material in Material.allCases {
      for strategy in Self.strategies {
        let change = Self.change(
          material, pieceCount: 1 + random.below(round % 4 == 0 ? 900 : 60),
          editPercent: random.pick([0, 2, 20, 100]), &random)
        let level = Int32(1 + random.below(9))
        let stream = Self.deflated(change.old, level: level, strategy: strategy)
        let what = "\(material), strategy \(strategy), level \(level), seed \(random.seed)"
        guard let result = Self.edited(stream, change, editor) else {
          // Zlib stores what it can't compress, what is new everywhere is better compressed anew, and with what is
          // added, at two bytes each, the old stream may be too large.
          let changed = change.edits.reduce(0) { $0 + $1.old.count }
          let added = change.edits.reduce(0) { $0 + $1.new.count }
          #expect(
            material == .noise || change.old.count < 200 || 2 * changed > change.old.count
              || stream.count + 2 * added > change.new.count + 64, "\(what)")
          continue
        }
        let read = Self.inflated(result, byteCountMax: change.new.count)
        #expect(read == change.new, "\(what)")
        #expect(Self.edited(stream, change) == result, "the same again: \(what)")
      }
    }
  }

  @Test(
    "A window away: matches reach as far as they may, and no further", arguments: [-3, -1, 0, 1, 3])
  func farMatches(growth: Int) throws {
    var random = SeededRandom(seed: 7)
    let word = random.bytes(count: 40)
    var change = Change()
    change.keep(word)
    change.keep((0..<32_600).map { _ in UInt8(0x41 + random.below(16)) })
    let middle = random.bytes(count: 32_768 - 32_600 - word.count)
    change.replace(middle, by: growth < 0 ? middle.dropLast(-growth) : middle + word.prefix(growth))
    change.keep(word)
    let stream = Self.deflated(change.old, level: 9, strategy: Z_DEFAULT_STRATEGY)
    let result = try #require(Self.edited(stream, change))
    #expect(Self.inflated(result, byteCountMax: change.new.count) == change.new)
  }

  @Test("A stream stays about as small as one that is compressed anew")
  func size() throws {
    var random = SeededRandom(seed: 3)
    var change = Change()
    for index in 0..<4000 {
      let line = Material.lines.piece(&random)
      if index % 18 == 5 {
        change.replace(line, by: Array("{\"seq\":1,\"redacted\":{\"by\":77,\"kept\":{}}}\n".utf8))
      } else {
        change.keep(line)
      }
    }
    let stream = Self.deflated(change.old, level: 6, strategy: Z_DEFAULT_STRATEGY)
    let result = try #require(Self.edited(stream, change))
    let anew = Self.deflated(change.new, level: 6, strategy: Z_DEFAULT_STRATEGY)
    #expect(Double(result.count) <= 1.05 * Double(anew.count))
  }

  @Test("Stored blocks are refused: nothing in them can be taken over bit by bit")
  func stored() {
    var change = Change()
    change.keep(Array(repeating: 1, count: 100))
    let stream = Self.deflated(change.old, level: 0, strategy: Z_DEFAULT_STRATEGY)
    #expect(Self.edited(stream, change) == nil)
  }

  @Test("A stream of another content than its caller says is refused")
  func otherContent() {
    var random = SeededRandom(seed: 11)
    var change = Self.change(.lines, pieceCount: 50, editPercent: 20, &random)
    let stream = Self.deflated(change.old, level: 6, strategy: Z_DEFAULT_STRATEGY)
    change.keep([0x41])
    #expect(Self.edited(stream, change) == nil)
  }

  @Test("Damaged streams are refused or give another content; none does harm")
  func damage() {
    var random = SeededRandom()
    let editor = DeflateEditor()
    for _ in 0..<1000 {
      let change = Self.change(
        random.pick(Material.allCases), pieceCount: 1 + random.below(12), editPercent: 30, &random)
      var stream = Self.deflated(
        change.old, level: 6, strategy: random.pick(Self.strategies))
      switch random.below(3) {
      case 0: stream = Array(stream.prefix(random.below(stream.count)))
      case 1: stream = random.bytes(count: random.below(200))
      default:
        for _ in 0...random.below(4) {
          stream[random.below(stream.count)] ^= UInt8(1 << random.below(8))
        }
      }
      guard let result = Self.edited(stream, change, editor) else { continue }
      #expect(result.count <= change.new.count + 64, "seed \(random.seed)")
    }
  }
}
