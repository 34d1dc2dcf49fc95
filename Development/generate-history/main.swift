// Writes a realistic history of uploads, for the demo, for tests and for measurements.
import Glibc
import JSON

func writeHistory(_ simulation: Simulation, _ options: Options, to output: inout Output)
  throws(OutputError)
{
  let schedule = Schedule(simulation, uploadCount: options.uploadCount)
  let lines = LineWriter(simulation: simulation)
  var json = JSONWriter()
  json.reserve(1 << 16)
  for upload in schedule.uploads {
    json.removeAll()
    lines.write(
      simulation.customer(Int(upload.customer)), ordinal: Int(upload.ordinal), to: &json)
    try output.write(line: json.bytes)
  }
}

/// Fills an output and finishes it; one that fails leaves no file behind.
func fill(
  _ output: consuming Output, _ body: (inout Output) throws(OutputError) -> Void
) throws(OutputError) {
  do throws(OutputError) {
    try body(&output)
    try output.finish()
  } catch {
    output.discard()
    throw error
  }
}

func report(_ message: String) {
  let line = Array("generate-history: \(message)\n".utf8)
  _ = line.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
}

func run() -> Int32 {
  do throws(UsageError) {
    let options = try Options(Array(CommandLine.arguments.dropFirst()))
    let simulation = try options.makeSimulation()
    do throws(OutputError) {
      if options.wantsHelp {
        try fill(Output()) { output throws(OutputError) in try output.write(Options.help) }
        return 0
      }
      if let path = options.pricesPath {
        try fill(Output(path: path)) { output throws(OutputError) in
          try PriceListFile(simulation: simulation).write(to: &output)
        }
      }
      if let path = options.ratesPath {
        try fill(Output(path: path)) { output throws(OutputError) in
          try RatesFile(simulation: simulation).write(to: &output)
        }
      }
      let history = if let path = options.outputPath { try Output(path: path) } else { Output() }
      try fill(history) { output throws(OutputError) in
        try writeHistory(simulation, options, to: &output)
      }
      return 0
    } catch {
      if error.isClosedPipe { return 0 }
      report(error.message)
      return 1
    }
  } catch {
    report("\(error.message)\nTry 'generate-history --help'.")
    return 2
  }
}

// A reader that has enough may leave: writing then fails with a cause instead of a signal.
signal(SIGPIPE, SIG_IGN)
exit(run())
