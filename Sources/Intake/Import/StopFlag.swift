// The operator's request to stop, checked between lines and while waiting for input.
import Synchronization

/// A flag that, once set, stays set. It can also query the signal handling.
package final class StopFlag: Sendable {
  private let flag = Atomic<Bool>(false)
  private let isRequested: @Sendable () -> Bool

  /// - Parameter isRequested: also checked; true counts as set.
  package init(isRequested: @escaping @Sendable () -> Bool = { false }) {
    self.isRequested = isRequested
  }

  package func set() { flag.store(true, ordering: .releasing) }

  package var isSet: Bool { flag.load(ordering: .acquiring) || isRequested() }
}
