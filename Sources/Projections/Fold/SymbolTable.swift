// Small integers for texts that repeat: environments, bundles, products, countries, currencies, families.
import Revenue

/// The number of a text in the table `symbols`. Numbers are given in the order in which events show the texts.
typealias Symbol = Int32

extension Symbol {
  /// No text.
  static let none: Symbol = -1
}

/// All symbols, in memory.
final class SymbolTable {
  private let arena: TextArena
  private var texts: [Text] = []
  private let numbers = PlaceTable()
  /// So many are in the database already.
  private var storedCount = 0
  private var target: RowTarget?

  init(_ arena: TextArena) { self.arena = arena }

  /// Reads the symbols of a database that are not here yet.
  func load(from database: Database) throws(DatabaseError) {
    let statement = try database.prepare("SELECT text FROM symbols WHERE id >= ? ORDER BY id")
    statement.bind(1, texts.count)
    while try statement.step() { _ = symbol(statement.bytes(0)) }
    storedCount = texts.count
  }

  /// The symbol of `text`, a new one where it has none. Most texts are those of the event before:
  /// `recent` keeps the last answer at one place of use.
  @inline(__always)
  func symbol(_ text: Text, recent: inout Symbol) -> Symbol {
    if recent >= 0, texts[Int(recent)].equals(text) { return recent }
    recent = symbol(text)
    return recent
  }

  /// The symbol of `text`, a new one where it has none.
  func symbol(_ text: Text) -> Symbol {
    known(text) ?? add(text)
  }

  /// The symbol of `text`, a new one where it has none.
  func symbol(_ text: String) -> Symbol {
    var text = text
    return text.withUTF8 { symbol(Text($0)) }
  }

  /// The symbol of a currency's code, a new one where it has none.
  func symbol(_ currency: Currency) -> Symbol { symbol(currency.description) }

  /// The symbol of `text` if it has one.
  func known(_ text: String) -> Symbol? {
    var text = text
    return text.withUTF8 { known(Text($0)) }
  }

  /// The symbol of `text` if it has one.
  func known(_ text: Text) -> Symbol? {
    numbers.find(text.placeHash()) { texts[$0].equals(text) }.map(Symbol.init)
  }

  /// Whether the symbol is here.
  func holds(_ symbol: Symbol) -> Bool { texts.indices.contains(Int(symbol)) }

  private func add(_ text: Text) -> Symbol {
    let kept = arena.keep(text)
    let number = Symbol(texts.count)
    texts.append(kept)
    numbers.insert(kept.placeHash(), Int(number))
    return number
  }

  /// The text of a symbol; empty for none.
  @inline(__always)
  func text(_ symbol: Symbol) -> Text {
    texts.indices.contains(Int(symbol)) ? texts[Int(symbol)] : Text(start: nil, count: 0)
  }

  /// The text of a symbol; empty for none.
  func string(_ symbol: Symbol) -> String { String(decoding: text(symbol), as: UTF8.self) }

  /// Writes those that the database doesn't have.
  func store(_ rows: RowWriter) throws(DatabaseError) {
    guard storedCount < texts.count else { return }
    if target == nil { target = try rows.target("INSERT INTO symbols(id, text)", valueCount: 2) }
    guard let target else { return }
    for number in storedCount..<texts.count {
      rows.begin(target)
      rows.add(number)
      rows.add(kept: texts[number])
      try rows.end()
    }
    storedCount = texts.count
  }
}
