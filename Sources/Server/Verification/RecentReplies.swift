// Recent final replies, for uploads that were in progress meanwhile.
import Base
import Projections

/// A bounded cache; what is evicted is found in the projections.
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
