// `merge`: writes one ledger with the events of several.
import Base
import Ledger
import ProgramSupport

struct MergeCommand {
  private let paths: [String]
  private let outputPath: String
  private let mapPath: String
  private let sizes: LedgerSizes

  /// The id of every merged ledger: nothing depends on it.
  private static let id = Array(repeating: UInt8(0x5A), count: 16)

  init(_ paths: [String], _ options: [String]) throws(UsageError) {
    let arguments = try Arguments(
      options, valued: LedgerSizes.optionNames.union(["-o", "--map"]))
    guard !paths.isEmpty else { throw UsageError(message: "merge takes ledgers") }
    self.paths = paths
    outputPath = try arguments.required("-o")
    mapPath = try arguments.required("--map")
    sizes = try LedgerSizes(arguments)
  }

  func run() throws {
    let sources = try paths.map { try EventSource(path: $0) }.sorted { $0.id < $1.id }
    for (source, next) in zip(sources, sources.dropFirst()) where source.id == next.id {
      throw UsageError(message: "\(source.name) and \(next.name) have the same id")
    }
    let order = try MergedOrder(sources)
    guard let id = LedgerID(random: Self.id) else {
      preconditionFailure("an id is made of 16 bytes")
    }
    let output = try LedgerOutput(
      path: outputPath, id: id,
      createdAtMs: sources.map(\.directory.identity.createdAtMs).min() ?? 0, sizes: sizes)
    try fill(Output(path: mapPath)) { map in
      try map.write(line: Array("merged,ledger,position".utf8))
      for (position, place) in order.places.enumerated() {
        let source = sources[place.ledger]
        var event = try source.event(at: place.position)
        event.replace(event.references) { order.merged($0.position, of: place.ledger) }
        try output.append(event, atMs: event.atMs)
        try map.write(line: Array("\(position),\(source.name),\(place.position)".utf8))
      }
    }
    try output.finish()
  }
}

/// The order of the events of several ledgers: by time, then by the ledger's id, then by position.
struct MergedOrder {
  struct Place {
    let ledger: Int
    let position: Position
  }

  private(set) var places: [Place] = []
  /// For each ledger, the merged positions of its events.
  private var mergedPositions: [[Position]]

  /// - Parameter sources: in the order of their ids.
  init(_ sources: [EventSource]) throws {
    var times: [[Int64]] = []
    for source in sources {
      var ofSource: [Int64] = []
      try source.forEach { _, line in ofSource.append(line.recordedAtMs) }
      times.append(ofSource)
    }
    mergedPositions = times.map { _ in [] }
    while true {
      // Times never fall within a ledger.
      var first: Int?
      for ledger in times.indices {
        let next = mergedPositions[ledger].count
        guard next < times[ledger].count else { continue }
        if let best = first, times[best][mergedPositions[best].count] <= times[ledger][next] {
          continue
        }
        first = ledger
      }
      guard let first else { return }
      let position = mergedPositions[first].count
      mergedPositions[first].append(places.count)
      places.append(Place(ledger: first, position: position))
    }
  }

  /// The merged position of an event that a ledger names. What the ledger has not, the merged one has not either.
  func merged(_ position: Position, of ledger: Int) -> Position {
    if position < mergedPositions[ledger].count { return mergedPositions[ledger][position] }
    return max(position, places.count)
  }
}
