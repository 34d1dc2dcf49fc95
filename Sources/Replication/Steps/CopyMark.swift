// Finds that a directory holds the copy that a ledger knows, rather than nothing because its disk is not mounted.
import Base
import ObjectStore

enum CopyMark {
  /// From now on a store that bears marks is used only while it bears the copy's.
  ///
  /// Throws `unavailable` if it seems to be another one, or empty.
  /// - Parameter record: what the ledger knows of its copy.
  /// - Returns: the copy's mark; nil for a store without marks.
  static func require(
    of store: any ObjectStore, for record: ReplicationRecord?
  ) throws(ObjectStoreError) -> UUID16? {
    guard let store = store as? any MarkedStore else { return nil }
    store.require(mark: nil)
    let found = try store.mark()
    if let found, let known = record?.copy, found != known {
      throw away(store, "the directory holds another copy than this ledger's")
    }
    if found == nil {
      // Whose steps these are is decided when they are read.
      let isEmpty = try store.list(prefix: CopyLayout.stepsPrefix, after: nil).isEmpty
      if isEmpty, record?.step != nil {
        throw away(
          store,
          "the directory is empty, but this ledger has a copy there; to begin a new one, remove the folder "
            + "'\(ReplicationRecord.folderName)' of the ledger")
      }
    }
    let mark = record?.copy ?? found ?? .random()
    if found == nil { try store.setMark(mark) }
    store.require(mark: mark)
    return mark
  }

  private static func away(_ store: any ObjectStore, _ cause: String) -> ObjectStoreError {
    ObjectStoreError(
      .unavailable, operation: "open copy", object: store.name,
      cause: "is its disk mounted? \(cause)")
  }
}
