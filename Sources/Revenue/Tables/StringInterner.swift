// Small integers for texts that repeat: environments, bundles, products, countries, currencies, families.

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
