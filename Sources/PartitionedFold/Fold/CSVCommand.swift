// `csv`: writes rows of a report as `ledgerctl export` does.
import JSON
import Projections

package enum CSVCommand {
  static func run(_ arguments: RulesArguments) throws {
    var arguments = arguments
    let path = try arguments.required("--task")
    guard let number = try arguments.integer("--report", 0...Int64(UInt16.max)) else {
      throw RulesFailure.usage("--report", "is missing")
    }
    try arguments.finish()
    let task = try FoldTask(readingFrom: path)
    guard task.reports.indices.contains(Int(number)) else {
      throw RulesFailure.usage("--report", "the task has \(task.reports.count) reports, from 0")
    }
    try run(task, report: Int(number), from: DescriptorInput(0), to: DescriptorOutput(1))
  }

  /// Writes one report's rows, without the columns that the report does not have itself.
  package static func run(
    _ task: FoldTask, report number: Int, from input: DescriptorInput, to output: DescriptorOutput
  ) throws {
    let request = task.reports[number]
    let csv = CSVReportWriter(form: request.layout.csv, zone: request.zone) { bytes in
      try output.write(bytes)
    }
    try PartitionCells(request, task)
      .write(ExchangeReader(input), table: UInt16(number), to: csv)
    try output.flush()
  }
}
