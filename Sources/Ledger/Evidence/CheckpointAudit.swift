// Compares signed heads with the roots that an audit computed from the events.
import Base

extension AuditReport {
  /// Checks the signatures and roots of kept checkpoints.
  /// - Parameter sizes: the checkpoints that existed when the audit began; it was given the same sizes.
  package mutating func check(_ store: CheckpointStore, sizes: [Int]) {
    for size in sizes {
      let name = CheckpointStore.fileName(size: size)
      do throws(LedgerError) {
        guard let checkpoint = try store.checkpoint(size: size) else { continue }
        check(checkpoint, name: name)
      } catch {
        add(AuditFinding(error, file: name, at: nil))
      }
    }
  }

  /// Checks that the log begins with the events of a signed head.
  /// - Parameter name: the name of the head in findings.
  package mutating func check(_ checkpoint: Checkpoint, name: String) {
    checkpointCount += 1
    guard checkpoint.size <= size else {
      add(
        AuditFinding(
          .missing, name, at: size, to: checkpoint.size,
          "it signs \(checkpoint.size) events, but the log ends at \(size)"))
      return
    }
    guard let root = roots[checkpoint.size] else {
      add(
        AuditFinding(
          .unreadable, name, at: checkpoint.size,
          "the events that it signs cannot be hashed: some of them are damaged"))
      return
    }
    if root != checkpoint.root {
      add(
        AuditFinding(
          .tampered, name, at: checkpoint.size,
          "the first \(checkpoint.size) events are not those that it signs"))
    }
  }
}
