// Writes a realistic history of uploads, for the demo, for tests and for measurements.
import AppStoreAuthority
import Base
import Glibc
import ProgramSupport

func run(_ arguments: [String]) throws {
  let options = try Options(arguments)
  let simulation = options.simulation
  if let path = options.pricesPath {
    try fill(Output(path: path)) { output in
      try PriceListFile(simulation: simulation).write(to: &output)
    }
  }
  if let path = options.ratesPath {
    try fill(Output(path: path)) { output in
      try RatesFile(simulation: simulation).write(to: &output)
    }
  }
  try fill(Output(ifGiven: options.outputPath)) { output in
    let schedule = Schedule(simulation, uploadCount: options.uploadCount)
    let signed = try options.signed.map { percent, path in
      SignedLines(signer: try AuthorityDirectory.objectSigner(path), percent: percent)
    }
    let lines = LineWriter(simulation: simulation, signed: signed)
    var json = JSONWriter()
    json.reserve(1 << 16)
    for upload in schedule.uploads {
      json.removeAll()
      try lines.write(
        simulation.customer(Int(upload.customer)), ordinal: Int(upload.ordinal), to: &json)
      try output.write(line: json.bytes)
    }
  }
}

exit(Program.run("generate-history", help: Options.help, run))
