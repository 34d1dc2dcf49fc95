// `plan` lists the separately scannable parts of a ledger's log, and its head; `scan` writes the events of a range.
import Base
package import Ledger

package enum PlanCommand {
  static func run(_ arguments: RulesArguments) throws {
    var arguments = arguments
    let path = try arguments.required("--directory")
    let size = try arguments.integer("--size", 0...999_999_999_999_999_999)
    try arguments.finish()
    OpenFileLimit.raise()
    let directory = try LedgerDirectory.open(path: path)
    try StandardOutput.write(line: plan(of: directory, size: size.map { Int($0) }))
  }

  /// - Parameter size: the number of events; nil for all that are certain to be on disk.
  package static func plan(of directory: LedgerDirectory, size wanted: Int?) throws -> [UInt8] {
    let reader = try LogReader(directory, .durable)
    if let damage = reader.damage, wanted ?? .max > reader.head.size { throw damage }
    let size = wanted ?? reader.head.size
    guard size <= reader.head.size else {
      throw LedgerError(
        .invalidInput, operation: "plan", object: "size \(size)",
        cause: "the log ends at \(reader.head.size)")
    }
    let parts = try reader.parts(size: size)
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("id", directory.identity.id.description)
    writer.member("origin", directory.identity.origin)
    writer.member("format_version", directory.identity.formatVersion)
    writer.member("size", size)
    writer.member("root", try reader.frontier(at: size).root.hex)
    writer.key("parts")
    writer.beginArray()
    for part in parts { write(part, to: &writer) }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }

  private static func write(_ part: LogPart, to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("name", part.name)
    writer.member("first", part.first)
    writer.member("end", part.end)
    writer.member("kind", part.kind.rawValue)
    writer.member("bytes", part.byteCount)
    writer.member("identity", part.identity.hex)
    writer.endObject()
  }
}

// MARK: - `scan`

package enum ScanCommand {
  package static func run(_ arguments: RulesArguments) throws {
    var arguments = arguments
    let path = try arguments.required("--directory")
    let positions: ClosedRange<Int64> = 0...999_999_999_999_999_999
    guard let from = try arguments.integer("--from", positions) else {
      throw Failure.usage("--from", "is missing")
    }
    guard let to = try arguments.integer("--to", positions) else {
      throw Failure.usage("--to", "is missing")
    }
    let beforeMs = try arguments.integer("--before", 0...Int64.max)
    let keepsReceipts = try arguments.flag("--receipts")
    try arguments.finish()
    guard from <= to else { throw Failure.usage("--to", "is before --from") }
    // Labels and counts of events are 32 bits wide.
    guard to - from < Int64(Int32.max) else {
      throw Failure.usage("--to", "is more than \(Int32.max) events after --from")
    }
    OpenFileLimit.raise()
    let directory = try LedgerDirectory.open(path: path)
    let scan = try RangeScan(
      directory, Int(from)..<Int(to), before: beforeMs, to: DescriptorOutput(1),
      keepsReceipts: keepsReceipts)
    try scan.run()
  }
}
