// Writes a realistic history of uploads, for the demo, for tests and for measurements.
import AppStoreAuthority
import Base
import Glibc
import ProgramSupport

func signedLines(_ options: Options) throws(AuthorityError) -> SignedLines? {
  guard let percent = options.signedPercent, let directory = options.authorityPath else {
    return nil
  }
  _ = try AuthorityDirectory.open(directory)
  let authority = try AuthorityDirectory.loadSignedObjects(directory)
  return SignedLines(signer: ObjectSigner(authority: authority), percent: percent)
}

func writeHistory(
  _ simulation: Simulation, _ options: Options, to output: inout Output
) throws {
  let schedule = Schedule(simulation, uploadCount: options.uploadCount)
  let lines = LineWriter(simulation: simulation, signed: try signedLines(options))
  var json = JSONWriter()
  json.reserve(1 << 16)
  for upload in schedule.uploads {
    json.removeAll()
    try lines.write(
      simulation.customer(Int(upload.customer)), ordinal: Int(upload.ordinal), to: &json)
    try output.write(line: json.bytes)
  }
}

func run() throws {
  let options = try Options(Array(CommandLine.arguments.dropFirst()))
  let simulation = try options.makeSimulation()
  if options.wantsHelp { return try StandardOutput.write(Options.help) }
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
  let history = if let path = options.outputPath { try Output(path: path) } else { Output() }
  try fill(history) { output in
    try writeHistory(simulation, options, to: &output)
  }
}

exit(Program.run("generate-history", run))
