// Small integers for texts that repeat, such as bundles, products and countries; and the arena of texts.
public import Base
public import Glibc

/// The number of a text that repeats. Numbers are assigned in the order in which the texts occur in events.
public typealias Symbol = Int32

extension Symbol {
  /// No text.
  @inlinable public static var none: Symbol { -1 }
}

/// All symbols, in memory.
public final class StringInterner {
  private let arena: TextArena
  @usableFromInline let texts = ChunkedArray<Text>()
  private let numbers = HashIndex()

  package init(_ arena: TextArena) { self.arena = arena }

  /// The number of symbols. A symbol is a number from 0 up to this.
  package var count: Int { texts.count }

  /// The symbol of `text`, created if needed. Most texts repeat from the previous event, so `recent` caches
  /// the last result for one call site.
  @inlinable @inline(__always)
  public func symbol(_ text: Text, recent: inout Symbol) -> Symbol {
    if recent >= 0, texts[Int(recent)].equals(text) { return recent }
    recent = symbol(text)
    return recent
  }

  /// The symbol of `text`, created if needed.
  public func symbol(_ text: Text) -> Symbol {
    known(text) ?? add(text)
  }

  /// The symbol of `text`, created if needed.
  package func symbol(_ text: String) -> Symbol {
    var text = text
    return text.withUTF8 { symbol(Text($0)) }
  }

  /// The symbol of a currency's code, created if needed.
  package func symbol(_ currency: Currency) -> Symbol { symbol(currency.description) }

  /// The symbol of `text`, if it has one.
  package func known(_ text: String) -> Symbol? {
    var text = text
    return text.withUTF8 { known(Text($0)) }
  }

  /// The symbol of `text`, if it has one.
  package func known(_ text: Text) -> Symbol? {
    numbers.find(text.placeHash()) { texts[$0].equals(text) }.map(Symbol.init)
  }

  /// Whether the symbol exists.
  package func holds(_ symbol: Symbol) -> Bool { texts.indices.contains(Int(symbol)) }

  private func add(_ text: Text) -> Symbol {
    let kept = arena.keep(text)
    let number = Symbol(texts.count)
    texts.append(kept)
    numbers.insert(kept.placeHash(), Int(number))
    return number
  }

  /// The text of a symbol; empty for `none`.
  @inlinable @inline(__always)
  public func text(_ symbol: Symbol) -> Text {
    texts.indices.contains(Int(symbol)) ? texts[Int(symbol)] : Text(start: nil, count: 0)
  }

  /// The text of a symbol; empty for `none`.
  package func string(_ symbol: Symbol) -> String { String(decoding: text(symbol), as: UTF8.self) }
}

// MARK: - Texts

/// The bytes of a text whose memory is owned elsewhere.
public typealias Text = JSONBytes

/// Stores texts as long as a fold lives: each is copied once into chunks that never move and are freed together, so a
/// `Text` stays valid as long as its arena.
package final class TextArena {
  private static let chunkSizeBytes = 1 << 18
  private var chunks: [UnsafeMutableRawBufferPointer] = []
  private var usedBytes = TextArena.chunkSizeBytes

  package init() {}

  deinit {
    for chunk in chunks { chunk.deallocate() }
  }

  /// Copies `text` into the arena.
  package func keep(_ text: Text) -> Text {
    if text.isEmpty { return Text(start: nil, count: 0) }
    if text.count > Self.chunkSizeBytes / 4 {
      let own = UnsafeMutableRawBufferPointer.allocate(byteCount: text.count, alignment: 1)
      own.copyMemory(from: text)
      // Insert before the current chunk, which stays the last.
      chunks.insert(own, at: max(chunks.count - 1, 0))
      return Text(own)
    }
    if usedBytes + text.count > Self.chunkSizeBytes {
      chunks.append(.allocate(byteCount: Self.chunkSizeBytes, alignment: 8))
      usedBytes = 0
    }
    let place = UnsafeMutableRawBufferPointer(
      rebasing: chunks[chunks.count - 1][usedBytes..<usedBytes + text.count])
    place.copyMemory(from: text)
    usedBytes += text.count
    return Text(place)
  }
}

extension UnsafeRawBufferPointer {
  /// Whether both contain the same bytes.
  @inlinable @inline(__always)
  public func equals(_ other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard let mine = baseAddress, let theirs = other.baseAddress else { return true }
    return mine == theirs || memcmp(mine, theirs, count) == 0
  }

  /// A hash that is the same in every run. Source: the 64-bit constants of FNV-1a.
  package var stableHash: UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in self { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    return hash
  }

  /// A number for a database index: the same in every run, and of little use without the bytes themselves.
  /// Four bytes keep rows and index narrow; the bytes tell collisions apart.
  package var indexHash: Int64 {
    let hash = stableHash
    return Int64(Int32(truncatingIfNeeded: hash ^ hash >> 32))
  }

  /// Whether these bytes sort before the other's.
  package func precedes(_ other: UnsafeRawBufferPointer) -> Bool { order(other) < 0 }

  /// Negative, zero or positive, as in a comparison of bytes.
  package func order(_ other: UnsafeRawBufferPointer) -> Int {
    let shared = Swift.min(count, other.count)
    if shared > 0, let mine = baseAddress, let theirs = other.baseAddress {
      let result = memcmp(mine, theirs, shared)
      if result != 0 { return Int(result) }
    }
    return count - other.count
  }
}

/// A text as the key of a dictionary, compared by its bytes.
package struct TextKey: Hashable {
  package let text: Text

  @inline(__always)
  package init(text: Text) { self.text = text }

  @inline(__always)
  package static func == (left: TextKey, right: TextKey) -> Bool { left.text.equals(right.text) }

  @inline(__always)
  package func hash(into hasher: inout Hasher) { hasher.combine(bytes: text) }
}

/// Calls `body` with the bytes of `text`.
package func withText<Result, Failure: Error>(
  _ text: String, _ body: (Text) throws(Failure) -> Result
) throws(Failure) -> Result {
  try withText(Array(text.utf8), body)
}

/// Calls `body` with the bytes of `text`.
package func withText<Result, Failure: Error>(
  _ text: [UInt8], _ body: (Text) throws(Failure) -> Result
) throws(Failure) -> Result {
  try text.withUnsafeBufferPointer { (buffer) throws(Failure) in try body(Text(buffer)) }
}

extension StaticString {
  /// The literal's bytes.
  package var text: Text { Text(start: utf8Start, count: utf8CodeUnitCount) }
}
