// The control requests: JSON objects that change how the stand-in answers.
import Base

extension StandInState {
  /// Carries out one request, or an array of them in turn; of an array with an error none.
  mutating func control(_ body: [UInt8]) throws(ControlError) {
    guard let value = try? JSONValue(body) else { throw ControlError("not JSON") }
    var changed = self
    for request in value.arrayValue ?? [value] { try changed.apply(request) }
    self = changed
  }

  private mutating func apply(_ request: JSONValue) throws(ControlError) {
    guard case .object(let members) = request, let operation = members.first?.key else {
      throw ControlError("not an object with an operation as its first member")
    }
    switch operation {
    case "behaviour":
      rules.append(try BehaviourRule(request, named: try request.text("behaviour")))
    case "refund":
      let reason = request["reason"] == nil ? "0" : try request.text("reason")
      guard reason == "0" || reason == "1" else { throw ControlError("reason is neither 0 nor 1") }
      let atMs = try request.optionalInteger("at_ms", 0...253_402_300_799_999)
      let percentage = try request.optionalInteger("percentage", 1...100_000) ?? 100_000
      let transaction = try request.text("refund")
      memory.refunds[transaction] = StoreMemory.Refund(
        atMs: atMs ?? clock.nowMs, reason: reason, percentage: Int(percentage),
        askedMs: clock.nowMs)
      memory.undoneRefunds[transaction] = nil
      memory.note("REFUND", nil, transaction, atMs: Timestamp.now())
    case "undo_refund":
      let transaction = try request.text("undo_refund")
      memory.refunds[transaction] = nil
      memory.undoneRefunds[transaction] = clock.nowMs
      memory.note("REFUND_REVERSED", nil, transaction, atMs: Timestamp.now())
    case "family_share": memory.familyShared.insert(try request.text("family_share"))
    case "second_device": memory.onSecondDevice.insert(try request.text("second_device"))
    case "renew":
      let count = try request.optionalInteger("count", 1...Int64(StoreMemory.renewalsMax)) ?? 1
      let original = try request.text("renew")
      let renewals = memory.extraRenewals[original] ?? []
      memory.extraRenewals[original] = Array(
        (renewals + Array(repeating: clock.nowMs, count: Int(count)))
          .prefix(StoreMemory.renewalsMax))
      memory.note("DID_RENEW", nil, original, atMs: Timestamp.now())
    case "lapse":
      let cause = request["cause"] == nil ? "voluntary" : try request.text("cause")
      guard let cause = StoreMemory.LapseCause(rawValue: cause) else {
        throw ControlError("cause is neither \"voluntary\" nor \"billing\"")
      }
      let original = try request.text("lapse")
      memory.lapses[original] = cause
      if cause == .voluntary {
        memory.note(
          "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", original, atMs: Timestamp.now())
      }
    case "renewals": memory.renewsByItself = try request.flag("renewals")
    case "latest_holds_consumables":
      memory.latestHoldsConsumables = try request.flag("latest_holds_consumables")
    case "notifications_url":
      guard let address = PostAddress(try request.text("notifications_url")) else {
        throw ControlError("notifications_url is not an http:// address of this machine")
      }
      notificationsAddress = address
    case "advance_ms":
      clock.aheadMs += try request.integer("advance_ms", 0...3_650 * 86_400_000)
      guard clock.aheadMs <= 36_500 * 86_400_000 else {
        throw ControlError("advance_ms comes to more than a hundred years")
      }
    case "reset":
      guard try request.flag("reset") else { throw ControlError("reset is not true") }
      reset()
    default: throw ControlError("there is no operation \"\(operation)\"")
    }
  }
}
