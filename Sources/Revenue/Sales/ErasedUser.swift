// Users that clients do not name (rule R6): by an app account token, and by the name that an erasure gave.
import Base
package import JSON

/// The name of an erased user, or of an app account token that belonged to one: `(redacted N)`, N being the erasure's
/// position; `(redacted N.2)` and so on for further tokens. Of a user that only a token names, `token:` precedes it.
package enum ErasedUser {
  private static let start = Array("(redacted ".utf8)
  /// Positions and counts of more digits do not exist.
  private static let digitsMax = 18

  /// - Parameter ordinal: 1 for a user and for the first token, 2 for the second token.
  package static func name(erasure: Int, ordinal: Int = 1) -> String {
    ordinal == 1 ? "(redacted \(erasure))" : "(redacted \(erasure).\(ordinal))"
  }

  /// The position of the erasure that gave this name; nil for any other identifier.
  package static func erasure(of identifier: JSONBytes) -> Int? {
    var place = identifier.starts(with: TokenUser.prefix.utf8) ? TokenUser.prefix.utf8.count : 0
    guard identifier.dropFirst(place).starts(with: start), identifier.last == UInt8(ascii: ")")
    else { return nil }
    place += start.count
    guard let erasure = number(identifier, &place) else { return nil }
    if place < identifier.count, identifier[place] == UInt8(ascii: ".") {
      place += 1
      guard let ordinal = number(identifier, &place), ordinal > 1 else { return nil }
    }
    return place == identifier.count - 1 ? erasure : nil
  }

  /// Whether an identifier has the form of such a name. Clients may not send one.
  package static func isName(_ identifier: JSONBytes) -> Bool { erasure(of: identifier) != nil }

  /// A decimal number without leading zeros.
  private static func number(_ text: JSONBytes, _ place: inout Int) -> Int? {
    let first = place
    var value = 0
    while place < text.count, 0x30...0x39 ~= text[place] {
      guard place - first < digitsMax else { return nil }
      value = value * 10 + Int(text[place] - 0x30)
      place += 1
    }
    return place == first || (place - first > 1 && text[first] == 0x30) ? nil : value
  }
}

/// A user of whom only an app account token is known.
package enum TokenUser {
  /// What begins the identifier of such a user. Clients may not send one.
  package static let prefix = "token:"

  /// R6: a token as it is compared: a UUID in lower case, or the name that an erasure gave; nil for any other text.
  package static func canonical(_ token: JSONBytes) -> [UInt8]? {
    if token.count == 36, let id = UUID16(String(decoding: token, as: UTF8.self)) {
      return Array(id.description.utf8)
    }
    return ErasedUser.isName(token) && token.first == UInt8(ascii: "(") ? Array(token) : nil
  }

  /// A number for a token in the form in which it is compared, by which tokens are compared: the same in every run,
  /// never 0.
  package static func key(_ token: [UInt8]) -> Int64 {
    let hash = token.withUnsafeBytes { $0.stableHash }
    return hash == 0 ? 1 : Int64(bitPattern: hash)
  }

  /// A user's identifier as the ledger has it: the token of a token user in lower case, any other as it is.
  package static func canonical(user identifier: String) -> String {
    guard identifier.hasPrefix(prefix) else { return identifier }
    return UUID16(String(identifier.dropFirst(prefix.count))).map { prefix + $0.description }
      ?? identifier
  }
}
