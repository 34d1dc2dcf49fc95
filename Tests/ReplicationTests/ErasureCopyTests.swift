// Erasures: redacted data leaves the copy too, at once.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct ErasureCopyTests {
  private func holds(_ rig: ReplicationRig, _ position: Int) throws -> Bool {
    let lines = try rig.check().lines(like: rig.directory)
    return String(decoding: lines[position], as: UTF8.self).contains("\"who\"")
  }

  @Test(arguments: [[0], [1, 2, 25], [55, 59], [0, 30, 59]])
  func objectsOfRewrittenSegmentsAreReplaced(_ positions: [Int]) throws {
    let rig = try ReplicationRig(block: 1_500, segment: 5_000)
    try rig.append(60)
    try rig.seal()
    try rig.append(3)
    try rig.copyAll()
    for position in positions { #expect(try holds(rig, position)) }
    try rig.erase(positions)
    try rig.append(2)
    try rig.copyAll()
    for position in positions { #expect(try !holds(rig, position)) }
    try rig.expectWhole()
  }

  @Test func whileSegmentsAreRewrittenFramesGoOnAndNothingElse() throws {
    let rig = try ReplicationRig(block: 1_500, segment: 5_000)
    try rig.append(60)
    try rig.erase(
      [3, 40],
      // A copy that began before may end later.
      sealed: { try rig.copyAll() },
      committed: {
        let before = rig.store.calls.count
        func copyFrames() throws {
          try rig.append(3)
          let size = try rig.openWriter().nextPosition
          #expect(rig.wait { rig.replicator?.status.confirmedSize == size })
        }
        try copyFrames()
        try rig.seal()
        // By now the replicator has seen the sealed block.
        try copyFrames()
        // The identity has another format version now, and may be copied at any moment.
        let puts = rig.store.calls[before...].filter { call in
          call.operation == .put && !call.key.hasPrefix("steps/")
            && !call.key.hasPrefix("identity/")
        }
        #expect(puts.isEmpty)
      })
    try rig.copyAll()
    try rig.expectWhole()
  }

  @Test func anErasureWhileReplicationIsStoppedReachesTheCopy() throws {
    let rig = try ReplicationRig(block: 1_500, segment: 5_000)
    try rig.append(60)
    try rig.seal()
    try rig.copyAll()
    rig.stop()
    try rig.erase([0, 20, 59])
    try rig.copyAll()
    for position in [0, 20, 59] { #expect(try !holds(rig, position)) }
    try rig.expectWhole()
  }
}
