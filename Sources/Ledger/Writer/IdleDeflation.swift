// Compresses on an idle processor, on a thread that no other thread has to wait for.
import Base
import Glibc
import Synchronization

/// Compresses one tail on a thread of idle priority, which then ends.
///
/// While other threads are busy, such a thread can stall anywhere, for minutes, and its priority cannot be raised
/// again. So it only computes: no other thread uses the memory that it reads and writes (that makes it Sendable), and
/// it acquires no lock and makes no file call. The wait for it can be abandoned; the thread then ends later, and its
/// result is dropped.
package final class IdleDeflation: @unchecked Sendable {
  private let events: ByteBuffer
  // Owned by the thread until `isDone`, and afterwards too if no thread waited.
  private let deflater: BlockDeflater
  private let deflated: ByteBuffer
  private let isDone = Atomic(false)
  // Posted when it is done, and to release a waiting thread. A semaphore contains no lock.
  private let bell: UnsafeMutablePointer<sem_t>

  /// Starts compressing the events, with a deflater that no other thread uses until it is done.
  package init(_ events: ByteBuffer, _ deflater: BlockDeflater) throws(LedgerError) {
    self.events = events
    self.deflater = deflater
    deflated = ByteBuffer(capacity: deflater.bound(events.count))
    bell = .allocate(capacity: 1)
    bell.initialize(to: sem_t())
    sem_init(bell, 0, 0)
    try WorkerThread.start(.idle) { [self] in run() }.detach()
  }

  deinit {
    sem_destroy(bell)
    bell.deallocate()
  }

  private func run() {
    deflater.deflate(events.bytes, into: deflated)
    isDone.store(true, ordering: .releasing)
    sem_post(bell)
  }

  /// Waits for the deflated events; nil if the wait was abandoned first. Call it once.
  package func wait() -> ByteBuffer? {
    while sem_wait(bell) != 0 {}
    return isDone.load(ordering: .acquiring) ? deflated : nil
  }

  /// Ends the wait, even one that has not begun.
  package func abandon() { sem_post(bell) }
}
