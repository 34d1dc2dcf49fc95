// The hand-over between commands and the server: the content of its frames.
@testable import Ledger
@testable import Server

extension FuzzTarget {
  static let handover = FuzzTarget(
    name: "handover", inputByteCountMax: 1024, words: ["receipt.uploaded", "{\"a\":1}"],
    seeds: {
      let draft = EventDraft(
        type: "receipt.verified", version: 1, data: Array("{\"upload\":,\"x\":1}".utf8),
        references: [PositionReference(offsetBytes: 10, eventIndex: 0)])
      let plain = EventDraft(type: "app.registered", version: 2, data: Array("{}".utf8))
      let failures = RemoteAppendReader.kinds.map { kind in
        RemoteAppendWriter.failure(
          LedgerError(kind, operation: "append", object: "ledger", cause: "it cannot be"))
      }
      return [[0]] + [[], [plain], [plain, draft]].map { [0] + RemoteAppendWriter.drafts($0) }
        + failures.map { [1] + $0 }
    },
    check: { input in
      guard let (form, rest) = split(input) else { return }
      var reader = RemoteAppendReader(Array(rest))
      do throws(RemoteAppendFault) {
        if form & 1 == 0 {
          RemoteAppendCheck.drafts(try reader.drafts())
        } else {
          require(!(try reader.failure()).description.isEmpty, "failures have causes")
        }
      } catch { require(!error.cause.isEmpty, "faults have causes") }
    })
}

private enum RemoteAppendCheck {
  static func drafts(_ drafts: [EventDraft]) {
    // What a writer would refuse is not what a client sends.
    guard drafts.allSatisfy({ $0.fault(eventCount: drafts.count) == nil }) else { return }
    var reader = RemoteAppendReader(RemoteAppendWriter.drafts(drafts))
    do throws(RemoteAppendFault) {
      let again = try reader.drafts()
      require(again.count == drafts.count, "as many drafts arrive as were sent")
      for (draft, other) in zip(drafts, again) {
        require(
          draft.type == other.type && draft.version == other.version && draft.data == other.data
            && draft.references == other.references, "drafts arrive as they were sent")
      }
    } catch { require(false, "drafts that were written are read: \(error.cause)") }
  }
}
