// Changes parts of a deflated content; what does not change keeps its bits.

/// Bytes of a content that others replace.
package struct ContentEdit: Equatable, Sendable {
  /// The bytes in the content that there was; not empty.
  package let old: Range<Int>
  /// Those in the new content.
  package let new: Range<Int>

  package init(old: Range<Int>, new: Range<Int>) {
    self.old = old
    self.new = new
  }
}

/// Makes a DEFLATE stream (RFC 1951) of a changed content from that of the old one. Tokens that neither stand in
/// changed bytes nor copy from such are taken over as they are, or with another distance; only what is left is
/// encoded anew, with the codes of the block that it stands in. It takes half as long again as inflating, and the
/// stream stays about as small. Not thread-safe.
package final class DeflateEditor {
  private let literals = HuffmanCode(
    firstBitCount: DeflateAlphabet.literalBitCount, values: DeflateAlphabet.literalValues)
  private let distances = HuffmanCode(
    firstBitCount: DeflateAlphabet.distanceBitCount, values: DeflateAlphabet.distanceValues)
  private let lengths = HuffmanCode(firstBitCount: 7, values: DeflateAlphabet.lengthValues)
  private let fixed = FixedCodes()
  private let finder = MatchFinder()
  private let source = ByteBuffer(capacity: 1 << 20)

  package init() {}

  /// How many bytes larger than its content a stream may be.
  private static let overheadByteCountMax = 64

  /// Writes the stream of the new content in place of what a buffer holds. False if the old stream is damaged or
  /// holds stored blocks, or if the new one would be more than 64 bytes larger than the new content: the buffer is
  /// then of no use.
  ///
  /// The result depends on the arguments only. It is checked neither against the new content nor the old stream
  /// against the old content: the caller inflates it.
  /// - Parameters:
  ///   - edits: in order, without overlaps; what is between them must be equal in both contents.
  ///   - oldByteCount: the size of the old content.
  package func edit(
    _ deflated: UnsafeRawBufferPointer, _ edits: [ContentEdit], oldByteCount: Int,
    new content: UnsafeRawBufferPointer, into result: ByteBuffer
  ) -> Bool {
    var oldEnd = 0
    var newEnd = 0
    for edit in edits {
      precondition(
        edit.old.lowerBound >= oldEnd && !edit.old.isEmpty
          && edit.old.lowerBound - oldEnd == edit.new.lowerBound - newEnd,
        "edits must fit both contents")
      (oldEnd, newEnd) = (edit.old.upperBound, edit.new.upperBound)
    }
    precondition(oldByteCount - oldEnd == content.count - newEnd && oldByteCount >= oldEnd)
    source.count = 0
    source.reserve(deflated.count + BitReader.padding)
    source.append(deflated)
    result.count = 0
    let capacity = content.count + Self.overheadByteCountMax
    result.reserve(capacity)
    finder.reset()
    var editing = DeflateEditing(
      BitReader(source.base, byteCount: deflated.count),
      BitWriter(result.base, capacity: capacity), edits, oldByteCount, content, finder, fixed)
    while true {
      guard let isLast = editing.beginBlock(literals, distances, lengths) else { return false }
      guard editing.walkBlock() else { return false }
      if isLast { break }
    }
    guard let byteCount = editing.finish() else { return false }
    result.count = byteCount
    return true
  }
}

/// The codes of blocks without codes of their own (RFC 1951, section 3.2.6).
final class FixedCodes {
  let literals = HuffmanCode(
    firstBitCount: DeflateAlphabet.literalBitCount, values: DeflateAlphabet.literalValues)
  let distances = HuffmanCode(
    firstBitCount: DeflateAlphabet.distanceBitCount, values: DeflateAlphabet.distanceValues)

  init() {
    let lengths = (0..<DeflateAlphabet.literalCount).map { symbol -> UInt8 in
      switch symbol {
      case ..<144: 8
      case ..<256: 9
      case ..<280: 7
      default: 8
      }
    }
    let ofDistances = [UInt8](repeating: 5, count: DeflateAlphabet.distanceCount)
    let isCode =
      lengths.withUnsafeBufferPointer(literals.make)
      && ofDistances.withUnsafeBufferPointer(distances.make)
    precondition(isCode, "the fixed codes are none")
  }
}
