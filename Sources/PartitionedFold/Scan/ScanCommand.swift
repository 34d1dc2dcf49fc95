// `scan`: the events of a range, checked, with the labels of what belongs together.
import Ledger

package enum ScanCommand {
  package static func run(_ arguments: RulesArguments) throws {
    var arguments = arguments
    let path = try arguments.required("--directory")
    let positions: ClosedRange<Int64> = 0...999_999_999_999_999_999
    guard let from = try arguments.integer("--from", positions) else {
      throw RulesFailure.usage("--from", "is missing")
    }
    guard let to = try arguments.integer("--to", positions) else {
      throw RulesFailure.usage("--to", "is missing")
    }
    let keepsReceipts = try arguments.flag("--receipts")
    try arguments.finish()
    guard from <= to else { throw RulesFailure.usage("--to", "is before --from") }
    // Labels and counts of events are 32 bits wide.
    guard to - from < Int64(Int32.max) else {
      throw RulesFailure.usage("--to", "is more than \(Int32.max) events after --from")
    }
    OpenFileLimit.raise()
    let directory = try LedgerDirectory.open(path: path)
    let scan = try RangeScan(
      directory, Int(from)..<Int(to), to: DescriptorOutput(1), keepsReceipts: keepsReceipts)
    try scan.run()
  }
}
