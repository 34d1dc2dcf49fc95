// Deflating where a processor is idle, on a thread that nobody has to wait for.
import Glibc
import Synchronization

/// Deflates one tail on a thread of idle priority, which ends with it.
///
/// Beside busy threads such a thread stands still at any place, for minutes, and its priority can't be raised again. So it
/// only computes: what it reads and writes is its own, it takes no lock and makes no file call. Who waits can be sent
/// away; the thread then ends some time, and its result is dropped.
final class IdleDeflation: @unchecked Sendable {
  private let events: ByteBuffer
  // The thread's own until `isDone`, and also afterwards where nobody waited.
  private let deflater: BlockDeflater
  private let deflated: ByteBuffer
  private let isDone = Atomic(false)
  // Raised when it is done, and to send away who waits. A semaphore has no lock inside.
  private let bell: UnsafeMutablePointer<sem_t>

  /// Starts deflating the events, with a deflater that nobody else uses before it is done.
  init(_ events: ByteBuffer, _ deflater: BlockDeflater) throws(LedgerError) {
    self.events = events
    self.deflater = deflater
    deflated = ByteBuffer(capacity: deflater.bound(events.count))
    bell = .allocate(capacity: 1)
    bell.initialize(to: sem_t())
    sem_init(bell, 0, 0)
    try WorkerThread.startDetached(.idle) { [self] in run() }
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

  /// Waits for the deflated events; nil where the wait was ended before. To be called once.
  func wait() -> ByteBuffer? {
    while sem_wait(bell) != 0 {}
    return isDone.load(ordering: .acquiring) ? deflated : nil
  }

  /// Ends the wait, also one that has not begun.
  func abandon() { sem_post(bell) }
}
