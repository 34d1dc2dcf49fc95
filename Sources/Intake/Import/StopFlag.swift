// The operator's wish to stop, set by a signal handler and looked at between lines.
import Synchronization

/// A flag that is set once. Setting it is safe in a signal handler.
package final class StopFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  package init() {}

  package func set() { flag.store(true, ordering: .releasing) }

  package var isSet: Bool { flag.load(ordering: .acquiring) }
}
