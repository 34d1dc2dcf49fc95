// Exceptions in memory, each once.

/// Keeps the exceptions of a fold that has no database, in the order in which they were found.
package final class ExceptionList: ExceptionSink {
  /// What tells exceptions apart; the same one at a later position is not kept.
  struct Key: Hashable {
    var type: ExceptionType
    /// −1 for an exception of a row or of a whole verification.
    var sale = -1
    var environment: Symbol
    var bundle: Symbol
    var product = TextKey(text: Text(start: nil, count: 0))
    var transaction = TextKey(text: Text(start: nil, count: 0))
    var detail: TextKey
  }

  private let arena: TextArena
  private var seen: Set<Key> = []
  private(set) var entries: [(key: Key, position: Int)] = []

  /// None yet; texts are kept in `arena`.
  package init(_ arena: TextArena) { self.arena = arena }

  package func add(_ type: ExceptionType, sale: Sale, detail: Text, position: Int) {
    // Those of pending sales are not facts yet.
    if sale.isPending { return }
    add(
      Key(
        type: type, sale: sale.id, environment: sale.environment, bundle: sale.bundle,
        detail: TextKey(text: detail)), position)
  }

  package func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, product: Text, transaction: Text,
    detail: Text, position: Int
  ) {
    add(
      Key(
        type: type, environment: environment, bundle: bundle, product: TextKey(text: product),
        transaction: TextKey(text: transaction), detail: TextKey(text: detail)), position)
  }

  package func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: String, position: Int
  ) {
    withText(detail) {
      add(
        Key(type: type, environment: environment, bundle: bundle, detail: TextKey(text: $0)),
        position)
    }
  }

  /// Copies the key's texts if it is new.
  func add(_ key: Key, _ position: Int) {
    if seen.contains(key) { return }
    var kept = key
    kept.product = TextKey(text: arena.keep(key.product.text))
    kept.transaction = TextKey(text: arena.keep(key.transaction.text))
    kept.detail = TextKey(text: arena.keep(key.detail.text))
    seen.insert(kept)
    entries.append((kept, position))
  }

  /// Walks through the exceptions; the number of the sale is −1 where there is none.
  package func forEach(
    _ body: (_ type: ExceptionType, _ sale: Int, _ detail: Text, _ position: Int) -> Void
  ) {
    for entry in entries {
      body(entry.key.type, entry.key.sale, entry.key.detail.text, entry.position)
    }
  }
}
