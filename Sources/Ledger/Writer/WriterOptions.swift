// What a writer can be told: sizes, and where time and salts come from.
import Base
import CCrypto

/// The settings of a writer. The defaults are what the format document promises.
package struct WriterOptions: Sendable {
  /// A tail with so many event bytes is handed over to become a block; 1 to 15 MiB.
  package var blockByteCount = 1 << 20
  /// A segment rolls before it would grow beyond this size.
  package var segmentByteCount = 256 << 20
  /// Appends wait while so many tails are not yet sealed: a reader has all of them open. Fewer where the limit of open
  /// files is low.
  package var unsealedTailCountMax = 3072
  /// Appends wait while tails of so many bytes are not yet sealed: who opens the log reads all of them.
  package var unsealedByteCountMax = 3 << 30
  /// A full tail is left alone for so long: what has ended by then never starts a thread of idle priority, for which the
  /// end of a process waits.
  package var sealingRestMs: Int64 = 5_000
  /// After that, tails are sealed where the processors have nothing else to do, until one has waited for so long, or three
  /// quarters of those that may wait do.
  package var sealingDelayMs: Int64 = 30_000
  /// A writer that closes seals its own tails for so long at most, and leaves the others to the next one.
  package var closingLimitMs: Int64 = 5_000
  /// The same, for tails that an earlier writer has left.
  package var closingInheritedLimitMs: Int64 = 1_000
  /// How sealing shares the processors from then on, and when the writer is closed.
  package var sealingPriority = ThreadPriority.usual
  /// A group commit takes no further submission once it has so many bytes.
  package var groupByteCount = 1 << 20
  /// After a commit of several submissions the next one waits for company until so much time has passed since
  /// that one began: many small commits take the processor from whoever makes the submissions.
  package var groupPauseMs: Int64 = 0
  /// `submit` waits while so many bytes are in the queue.
  package var queueByteCount = 16 << 20
  /// The level of libdeflate, 1 to 12.
  package var compressionLevel: Int32 = 6
  /// Opens also a log that is shorter than the newest signed head that `heads` names: for who accepts its history.
  package var acceptsShorterLog = false
  /// The time in milliseconds since 1970.
  package var clock: @Sendable () -> Int64 = { Timestamp.now() }
  /// Fills a buffer with random bytes; false if it can't.
  package var random: @Sendable (UnsafeMutableRawBufferPointer) -> Bool = { buffer in
    RAND_bytes(
      buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(buffer.count)) == 1
  }

  package init() {}
}

/// What a writer has seen of a clock that stands before the last event's time: event times never decrease,
/// so that the events got that time instead of the clock's.
package struct ClockSetBack: Sendable, Equatable {
  /// The greatest distance in milliseconds.
  package internal(set) var distanceMsMax: Int64 = 0
  /// How many events were recorded meanwhile.
  package internal(set) var eventCount = 0

  /// A sentence for people; nil where the distance is less than the second that clocks are put right by.
  package var note: String? {
    guard distanceMsMax >= 1000 else { return nil }
    return "the clock was \(distanceMsMax / 1000) s behind the last event: \(eventCount) "
      + "event\(eventCount == 1 ? " was" : "s were") recorded with that event's time"
  }
}

/// What recovery found and did when a ledger was opened for writing.
package struct RecoveryReport: Sendable, Equatable {
  /// An incomplete end that was cut off: it was never acknowledged, or a tail holds it.
  package struct Cut: Sendable, Equatable {
    /// The file's path inside the ledger.
    package let file: String
    /// Where the file ends now.
    package let offsetBytes: Int
    /// How many bytes were cut off.
    package let byteCount: Int

    package init(file: String, offsetBytes: Int, byteCount: Int) {
      self.file = file
      self.offsetBytes = offsetBytes
      self.byteCount = byteCount
    }
  }

  /// The torn frame at the end of the newest tail.
  package internal(set) var tornFrame: Cut?
  /// The newest tail where it held no whole frame, and was removed.
  package internal(set) var emptyTail: String?
  /// The torn member at the end of the newest segment.
  package internal(set) var tornMember: Cut?
  /// A damaged block that was written anew.
  package struct RepairedBlock: Sendable, Equatable {
    /// The segment's path inside the ledger.
    package let file: String
    /// The block's ordinal in it, from 0.
    package let block: Int
    /// The path of the tail that held its events.
    package let tail: String

    package init(file: String, block: Int, tail: String) {
      self.file = file
      self.block = block
      self.tail = tail
    }
  }

  /// Damaged blocks that were written anew from the tails that they were made of.
  package internal(set) var repairedBlocks: [RepairedBlock] = []
  /// Tails that were removed because blocks hold their events.
  package internal(set) var coveredTails: [String] = []
  /// Tails that are made into blocks beside the writing: work that the last writer left, not damage.
  package internal(set) var unsealedTails: [String] = []
  /// Files that had not come into being and were removed.
  package internal(set) var temporaryFiles: [String] = []

  /// Whether the log was left as a closed writer leaves it.
  package var isClean: Bool { notes.isEmpty }

  /// One sentence for each thing that had to be mended, for people. A full tail is none: a writer
  /// that closes does not seal the newest one, however full it is.
  package var notes: [String] {
    var notes: [String] = []
    if let cut = tornFrame {
      notes.append(
        "cut \(cut.byteCount) byte\(cut.byteCount == 1 ? "" : "s") of a torn frame off \(cut.file)")
    }
    if let emptyTail { notes.append("removed \(emptyTail): it held no event") }
    if let cut = tornMember {
      notes.append(
        "cut \(cut.byteCount) byte\(cut.byteCount == 1 ? "" : "s") of a torn block off \(cut.file)")
    }
    notes += repairedBlocks.map {
      "rewrote block \($0.block) of \($0.file) from \($0.tail): it was damaged"
    }
    notes += coveredTails.map { "removed \($0): its events are in a block" }
    notes += temporaryFiles.map { "removed \($0): it was incomplete" }
    return notes
  }
}
