// The thread that reads responses from the projections, while the completion loop folds what came next.
import Base
import Ledger
import Projections

/// The input of the answer loop.
enum AnswerItem: Sendable {
  /// A client to answer, and its upload, which is folded.
  case answer(PendingResponse, FoldedUpload)
  /// Whoever looks for progress is notified.
  case probe(Latch)
}

/// Responds to clients. Several resources are read at once, but not all: the first need not wait for the last.
final class AnswerLoop {
  private static let batchMax = 32
  /// The memory of responses beyond which no further one is read.
  private static let byteCountMax = 8 << 20

  private let projections: any WorkflowProjections
  private let notes: OperatorNotes
  private let queue: WorkQueue<AnswerItem>

  init(_ shared: WorkflowShared, _ queue: WorkQueue<AnswerItem>) {
    (projections, notes, self.queue) = (shared.projections, shared.notes, queue)
  }

  /// Works until the queue is closed and empty.
  func run() {
    while true {
      let batch = queue.popAll(atMost: Self.batchMax)
      if batch.isEmpty { return }
      var clients: [(response: PendingResponse, upload: FoldedUpload)] = []
      var probes: [Latch] = []
      for item in batch {
        switch item {
        case .answer(let response, let upload): clients.append((response, upload))
        case .probe(let latch): probes.append(latch)
        }
      }
      answer(clients[...])
      for probe in probes { probe.open() }
    }
  }

  private func answer(_ clients: ArraySlice<(response: PendingResponse, upload: FoldedUpload)>) {
    var clients = clients
    while !clients.isEmpty {
      do {
        let answers = try projections.answers(
          uploads: clients.map(\.upload)[...], byteCountMax: Self.byteCountMax)
        precondition(!answers.isEmpty, "each turn must read at least one upload")
        for (client, answer) in zip(clients, answers) { give(answer, to: client.response) }
        clients = clients.dropFirst(answers.count)
      } catch {
        for client in clients { give(.failure(error), to: client.response) }
        return
      }
    }
  }

  private func give(_ answer: Result<ClientReceipt?, any Error>, to response: PendingResponse) {
    do {
      if let receipt = try answer.get() { return response.answer(receipt.answer) }
    } catch { notes.fault("read a reply", error) }
    response.answer(.tryLater)
  }
}
