// What a comparison of a merged ledger with its sources finds where one event is not as its source gives it.
import Base
import Ledger
import Merge
import TestSupport
import Testing

@Suite struct MergeVerificationTests {
  /// The events of a log, to be copied as they are.
  private static func drafts(_ lines: [String]) throws -> [EventDraft] {
    try lines.map { line in
      var line = line
      return try line.withUTF8 { bytes in
        let event = try #require(EventLine(UnsafeRawBufferPointer(bytes)))
        var draft = EventDraft(
          type: String(decoding: event.type, as: UTF8.self), version: event.version,
          data: Array(event.data))
        draft.stored = StoredForm(event, redactedBy: nil)
        return draft
      }
    }
  }

  private static func edited(_ draft: EventDraft, data: [UInt8]) -> EventDraft {
    var edited = EventDraft(type: draft.type, version: draft.version, data: data)
    edited.stored = draft.stored
    return edited
  }

  @Test("an event that differs from its source is named, with what differs")
  func differences() throws {
    let shops = [try Shop(1), try Shop(2)]
    let time = "2026-02-02"
    for (index, shop) in shops.enumerated() {
      try shop.register(at: "2026-02-01")
      try shop.append(.upload(user: "u1", receipt: "r\(index)"), at: time)
    }
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-03")
    let drafts = try Self.drafts(try place.lines())
    try #require(drafts.count == 5)
    let cases: [(at: Position, cause: String, edit: (inout [EventDraft]) -> Void)] = [
      (
        4, "its time differs",
        { $0[4].stored = StoredForm(recordedAtMs: ms(time) + 1, saltFrom: $0[4].data) }
      ),
      (
        3, "its salt differs",
        { $0[3].stored = StoredForm(recordedAtMs: ms(time), saltFrom: $0[3].data) }
      ),
      (
        3, "its data differs",
        {
          let text = String(decoding: $0[3].data, as: UTF8.self)
          $0[3] = Self.edited($0[3], data: Array(text.replacing("u1", with: "u9").utf8))
        }
      ),
      (4, "it is not in the order of the merge", { $0.swapAt(3, 4) }),
    ]
    for (position, cause, edit) in cases {
      var changed = drafts
      edit(&changed)
      let fixture = try LedgerFixture(id: 9, origin: "changed.example")
      _ = try fixture.append(drafts: changed)
      let found = try MergeVerification(of: fixture.directory, with: shops.map(\.directory))
      expectEqual(found.differences.map(\.cause), [cause])
      expectEqual(found.differences.map(\.position), [position], "\(cause)")
    }
  }
}
