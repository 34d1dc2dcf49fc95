// Positions in damaged projections that no event has: planning an erasure ends with the damage.
import Ledger
import Projections
import TestSupport
import Testing

import Erasure

@Suite struct DamagedPlanTests {
  @Test("An upload at an impossible position is damage") func position() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(user: "anna"), .signedUpload(signed("s1"), user: "bert")])
    #expect(try Self.preview(fixture).targetCount > 0)
    try Database(path: fixture.path + "/projections/1.sqlite", mode: .write).execute(
      "UPDATE uploads SET position = -7 WHERE position = 0")
    let error = #expect(throws: ErasureError.self) { try Self.preview(fixture) }
    #expect(error.map { "\($0)".contains("a value that this program never writes") } ?? false)
  }

  private static func preview(_ fixture: LedgerFixture) throws -> ErasurePreview {
    try ErasurePreview.of(
      .user("anna", appFamily: nil), LogReader(fixture.directory), fixture.current(), isExact: true)
  }
}
