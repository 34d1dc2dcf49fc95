// `version`: what decides whether another program and this one understand each other.
import Base
import JSON
import Ledger

enum VersionCommand {
  static func run(_ arguments: RulesArguments) throws {
    try arguments.finish()
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("version", programVersion)
    writer.member("exchange", ExchangeFormat.version)
    writer.member("format_version", Format.versionWithRedactions)
    writer.endObject()
    try StandardOutput.write(line: writer.bytes)
  }
}

/// Text on standard output.
enum StandardOutput {
  static func write(line: [UInt8]) throws(ExchangeError) {
    let output = DescriptorOutput(1)
    try output.write(line)
    try output.write([0x0A])
    try output.flush()
  }
}
