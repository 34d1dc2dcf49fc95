// One line of JSON for each answer, so that each acknowledged upload can be looked for in the log.
import ProgramSupport

final class ResponseFile {
  private var output: Output
  private var line: [UInt8] = []

  init(path: String) throws(OutputError) { output = try Output(path: path) }

  /// `{"upload":12,"status":200,"receipt":"…"}`; `null` where the answer names no receipt.
  func add(
    _ number: Int, status: Int, id: UnsafeBufferPointer<UInt8>?
  ) throws(OutputError) {
    line.removeAll(keepingCapacity: true)
    line.append(contentsOf: "{\"upload\":".utf8)
    append(number)
    line.append(contentsOf: ",\"status\":".utf8)
    append(status)
    line.append(contentsOf: ",\"receipt\":".utf8)
    if let id {
      line.append(UInt8(ascii: "\""))
      line.append(contentsOf: id)
      line.append(UInt8(ascii: "\""))
    } else {
      line.append(contentsOf: "null".utf8)
    }
    line.append(UInt8(ascii: "}"))
    try output.write(line: line)
  }

  func finish() throws(OutputError) { try output.finish() }

  private func append(_ value: Int) {
    var divisor = 1
    while value / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      line.append(UInt8(ascii: "0") + UInt8(value / divisor % 10))
      divisor /= 10
    }
  }
}
