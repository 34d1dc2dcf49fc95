// `catch-up`: from an upload that has just become durable to projections that show it.
import Base
import Glibc
import Ledger
import ProgramSupport
import Projections

enum CatchUp {
  /// Appends uploads with their results to a ledger, one by one, and folds each: by projections that are
  /// held open as a server holds them, or by ones that are opened for it as a command does.
  static func run(_ arguments: Arguments) throws {
    let path = try arguments.required("--ledger")
    let count = max(1, try arguments.integer("--count", 0...Int.max) ?? 20)
    let events = try EventFile(path: try arguments.required("--events"), byteCountMax: 64 << 20)
    let directory = try LedgerDirectory.open(path: path)
    let writer = try LedgerWriter.open(directory)
    var held: [Double] = []
    var opened: [Double] = []
    let live = try LiveProjections(directory)
    var uploads = try newUploads(events, live)[...]
    // One more, unmeasured, comes first: it finds nothing in any cache.
    for turn in 0...2 * count {
      guard let drafts = uploads.popFirst() else {
        throw ProgramError("catch-up: the file of events holds too few uploads")
      }
      _ = try writer.append(drafts)
      if turn % 2 == 0 {
        let start = now()
        try live.catchUp()
        if turn > 0 { held.append(1000 * (now() - start)) }
      } else {
        let start = now()
        _ = try Projector(try LogReader(directory)).current()
        opened.append(1000 * (now() - start))
        try live.catchUp()
      }
      guard live.position == writer.nextPosition else {
        throw ProgramError("catch-up: events are left unfolded")
      }
    }
    try writer.close()
    report(["held_ms": held, "opened_ms": opened])
  }

  /// Uploads of another ledger, as this one would have recorded them, each with its App Store result.
  private static func newUploads(
    _ events: EventFile, _ live: LiveProjections
  ) throws -> [[EventDraft]] {
    var uploads: [[EventDraft]] = []
    var upload: EventDraft?
    for line in events.lines {
      var parts = try EventParts(line)
      if parts.type == "receipt.uploaded" {
        upload = nil
        guard let bundle = parts.data.value(after: #""bundle_id":""#, upTo: UInt8(ascii: "\"")),
          let family = live.appFamily(ofBundle: String(decoding: bundle, as: UTF8.self)),
          let start = parts.data.index(after: #""app_family_id":""#, within: 512)
        else { continue }
        let text = Array(family.description.utf8)
        parts.data.replaceSubrange(start..<start + text.count, with: text)
        upload = EventDraft(type: parts.type, version: 1, data: parts.data)
      } else if parts.type == "receipt.verified", let given = upload,
        let start = parts.data.index(after: #""upload":"#, within: 16),
        let end = parts.data[start...].firstIndex(of: UInt8(ascii: ","))
      {
        parts.data.removeSubrange(start..<end)
        let reference = PositionReference(offsetBytes: start, eventIndex: 0)
        uploads.append([
          given,
          EventDraft(type: parts.type, version: 1, data: parts.data, references: [reference]),
        ])
        upload = nil
      }
    }
    return uploads
  }
}

/// `open`: a ledger for reading, and for writing.
enum Opening {
  static func run(_ arguments: Arguments) throws {
    let path = try arguments.required("--ledger")
    let count = max(1, try arguments.integer("--count", 0...Int.max) ?? 20)
    var reading: [Double] = []
    var writing: [Double] = []
    // The first fills the caches and finishes what the last writer left.
    for turn in 0...count {
      var start = now()
      let size = try LogReader(try LedgerDirectory.open(path: path)).head.size
      let readSeconds = now() - start
      start = now()
      let writer = try LedgerWriter.open(try LedgerDirectory.open(path: path))
      let writeSeconds = now() - start
      guard writer.nextPosition == size else { throw ProgramError("open: the heads differ") }
      try writer.close()
      if turn == 0 { continue }
      reading.append(1000 * readSeconds)
      writing.append(1000 * writeSeconds)
    }
    report(["reading_ms": reading, "writing_ms": writing])
  }
}
