// Exceptions in memory, without duplicates.

/// Stores the exceptions of a fold without a database, in the order in which they were found.
package final class ExceptionList: ExceptionSink {
  /// The fields that distinguish exceptions. A repetition at a later position is not stored.
  struct Key: Hashable {
    var type: ExceptionType
    /// −1 for an exception of a row or of a whole verification.
    var sale = -1
    var environment: Symbol
    var bundle: Symbol
    var product = TextKey(text: Text(start: nil, count: 0))
    var transaction = TextKey(text: Text(start: nil, count: 0))
    var detail: TextKey
    /// Of which it is an exception, or −1.
    var upload = -1
  }

  private let arena: TextArena
  private var seen: Set<Key> = []
  private(set) var entries: [(key: Key, position: Int)] = []

  /// Creates an empty list, which stores texts in `arena`.
  package init(_ arena: TextArena) { self.arena = arena }

  package func add(_ type: ExceptionType, sale: Sale, detail: Text, position: Int) {
    // Exceptions of pending sales are not facts yet.
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
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: Text, upload: Int,
    position: Int
  ) {
    // Verifications of one upload can differ in environment and bundle.
    add(
      Key(
        type: type, environment: .none, bundle: .none, detail: TextKey(text: detail),
        upload: upload), position)
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

  /// Stores an exception and copies its texts, if it is new.
  func add(_ key: Key, _ position: Int) {
    if seen.contains(key) { return }
    var kept = key
    kept.product = TextKey(text: arena.keep(key.product.text))
    kept.transaction = TextKey(text: arena.keep(key.transaction.text))
    kept.detail = TextKey(text: arena.keep(key.detail.text))
    seen.insert(kept)
    entries.append((kept, position))
  }

  /// Visits the exceptions; the sale's number is −1 if there is no sale.
  package func forEach(
    _ body: (_ type: ExceptionType, _ sale: Int, _ detail: Text, _ position: Int) -> Void
  ) {
    for entry in entries {
      body(entry.key.type, entry.key.sale, entry.key.detail.text, entry.position)
    }
  }
}
