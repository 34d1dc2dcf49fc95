// `sign-objects`: payloads of others, one a line, signed as signed objects.
import AppStoreAuthority
import Base
import ProgramSupport

struct SignObjects {
  private let signer: ObjectSigner

  /// One line of input.
  private struct Order {
    var payload: [UInt8]
    var fault: ObjectFault?
  }

  static func run(_ arguments: ArraySlice<String>) throws {
    let arguments = try Arguments(arguments, valued: ["--authority", "-o"])
    let command = SignObjects(
      signer: try AuthorityDirectory.objectSigner(try arguments.required("--authority")))
    try fill(Output(ifGiven: arguments.text("-o"))) { output in try command.write(to: &output) }
  }

  private func write(to output: inout Output) throws {
    var input = LineInput()
    var number = 0
    while let line = try input.next(beforeWaiting: { try output.flush() }) {
      number += 1
      if line.isEmpty { continue }
      let order: Order
      do { order = try Self.order(line) } catch let error as UsageError {
        throw ProgramError("standard input, line \(number): \(error.message)")
      }
      try output.write(line: signer.sign(order.payload, order.fault))
    }
  }

  private static func order(_ line: [UInt8]) throws -> Order {
    try line.withUnsafeBytes { bytes in
      var payload: [UInt8]?
      var fault: ObjectFault?
      do {
        var cursor = JSONCursor(bytes)
        try cursor.beginObject()
        while let key = try cursor.nextKey() {
          if key == "payload" {
            // As it stands: what is signed is the text, not what it means.
            payload = Array(try cursor.readRaw())
          } else if key == "payload_text" {
            payload = try cursor.readString().bytes
          } else if key == "fault" {
            fault = try Self.fault(cursor.readString().string)
          } else {
            throw UsageError(message: "unknown member '\(key.string)'")
          }
        }
        try cursor.expectEnd()
      } catch is JSONError {
        throw UsageError(message: "not an object with payload and fault")
      }
      guard let payload else { throw UsageError(message: "payload is missing") }
      return Order(payload: payload, fault: fault)
    }
  }

  /// A fault by its name.
  static func fault(_ name: String) throws(UsageError) -> ObjectFault {
    guard let fault = ObjectFault(rawValue: name) else {
      let names = ObjectFault.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError(message: "fault '\(name)' must be one of \(names)")
    }
    return fault
  }
}
