// Folds the events that state what holds for the whole ledger, but for registrations of apps.
import Base
import Ledger
import Revenue

extension DeclarationTable {
  /// Folds an event. Returns what is wrong if it names no event that it may name.
  /// - Parameter origins: knows the events if they have other positions here than in their ledgers.
  func fold(
    _ type: EventType, _ event: EventLine, _ data: Text, _ origins: (any EventOrigins)?
  ) throws -> EventError? {
    let (position, recordedAtMs) = (event.position, event.recordedAtMs)
    switch type {
    case .pricesDeclared:
      try add(try PricesDeclared(data: data), position: position, recordedAtMs: recordedAtMs)
    case .ratesDeclared:
      try add(try RatesDeclared(data: data), position: position, recordedAtMs: recordedAtMs)
    case .pricesWithdrawn, .ratesWithdrawn:
      let withdrawn = try DeclarationWithdrawn(type, data: data)
      let fault = EventError.badField(type, field: "position")
      var named = withdrawn.position
      if let origins {
        guard let known = origins.position(named: named, by: event) else { return fault }
        named = known
      }
      let isKnown = try withdraw(withdrawn.declared, at: named, position: position)
      return isKnown ? nil : fault
    case .settlementDeclared, .settlementMapped:
      try add(settlement: data, type, position: position, isOfOneLedger: origins == nil)
    case .trustDeclared:
      try add(try TrustDeclared(data: data), data: data, position: position)
    case .dataRedacted:
      try add(try DataRedacted(data: data), position: position, recordedAtMs: recordedAtMs)
    default: preconditionFailure("an event of this type is folded elsewhere")
    }
    return nil
  }
}
