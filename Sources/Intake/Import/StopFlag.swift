// The operator's wish to stop, looked at between lines and while waiting for input.
import Synchronization

/// A flag that is set once, or a query to the signal handling.
package final class StopFlag: Sendable {
  private let flag = Atomic<Bool>(false)
  private let isRequested: @Sendable () -> Bool

  /// - Parameter isRequested: asked too; true counts as set.
  package init(isRequested: @escaping @Sendable () -> Bool = { false }) {
    self.isRequested = isRequested
  }

  package func set() { flag.store(true, ordering: .releasing) }

  package var isSet: Bool { flag.load(ordering: .acquiring) || isRequested() }
}
