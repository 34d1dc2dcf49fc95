// Final answers that came a moment ago, for uploads that were on their way meanwhile.
import Base
import Projections

/// A bounded memory; what falls out of it is found in the projections.
struct RecentReplies {
  static let countMax = 8192
  private var replies: [UUID16: RecentReply] = [:]
  private var order = FIFO<UUID16>()

  subscript(receiptID: UUID16) -> RecentReply? { replies[receiptID] }

  mutating func insert(_ reply: RecentReply, for receiptID: UUID16) {
    if replies.updateValue(reply, forKey: receiptID) == nil { order.append(receiptID) }
    while order.count > Self.countMax, let oldest = order.popFirst() {
      replies.removeValue(forKey: oldest)
    }
  }
}
