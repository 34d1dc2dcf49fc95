// prices.withdrawn and rates.withdrawn: a declaration that does not count from here on.
package import Base

/// The entries of a declaration no longer count. What was reported before, as of an earlier position, stays.
package struct DeclarationWithdrawn: Equatable, Sendable {
  /// `prices.declared` or `rates.declared`.
  package let declared: EventType
  /// The position of the declaration.
  package let position: Position

  /// The type of the withdrawals of a type of declarations; nil if such declarations cannot be withdrawn.
  package static func type(ofDeclared declared: EventType) -> EventType? {
    switch declared {
    case .pricesDeclared: .pricesWithdrawn
    case .ratesDeclared: .ratesWithdrawn
    default: nil
    }
  }

  /// The event's data.
  package static func data(position: Position) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("position", position)
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// - Parameter type: `prices.withdrawn` or `rates.withdrawn`.
  package init(_ type: EventType, data: JSONBytes) throws(EventError) {
    let members = try EventMembers(type, data)
    position = try members.count("position")
    declared = type == .pricesWithdrawn ? .pricesDeclared : .ratesDeclared
  }
}
