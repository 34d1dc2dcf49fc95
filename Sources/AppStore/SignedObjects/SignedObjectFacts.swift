// What verification needs of any signed payload: when it was signed, and for which environment.
private import Base
import JSON

/// The environment and the time of a transaction, a renewal, an app transaction or a notification.
struct SignedObjectFacts: Sendable {
  /// The environment that a payload names; those signed before September 2022 name none.
  enum Environment: Sendable {
    case missing, production, sandbox, xcode, localTesting, unknown

    init(_ value: LenientValue) {
      guard case .string(let text) = value else {
        if case .missing = value { self = .missing } else { self = .unknown }
        return
      }
      if text.isEmpty {
        self = .missing
        return
      }
      let name = JSONString(raw: text, hasEscapes: false)
      if name == EnvironmentName.production {
        self = .production
      } else if name == EnvironmentName.sandbox {
        self = .sandbox
      } else if name == "Xcode" {
        self = .xcode
      } else {
        self = name == "LocalTesting" ? .localTesting : .unknown
      }
    }
  }

  private(set) var environment = Environment.missing
  /// Epoch milliseconds: `signedDate`, or an app transaction's `receiptCreationDate` if it has none.
  private(set) var signedDateMs: Int64?
  /// Whether there is a date, readable or not.
  private(set) var hasSignedDate = false

  /// Reads an object that was validated.
  init(_ payload: JSONBytes) throws(JSONError) {
    let keeper = TextKeeper()
    var signedDate = LenientValue.missing
    var creationDate = LenientValue.missing
    var receiptType: Environment?
    var cursor = JSONCursor(payload)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "signedDate" {
        signedDate = try keeper.read(&cursor)
      } else if key == "environment" {
        environment = Environment(try keeper.read(&cursor))
      } else if key == "receiptType" {
        receiptType = Environment(try keeper.read(&cursor))
      } else if key == "receiptCreationDate" {
        creationDate = try keeper.read(&cursor)
      } else if key == "data" || key == "summary" || key == "appData" {
        try readNested(&cursor, keeper)
      } else if key == "externalPurchaseToken" {
        try readToken(&cursor, keeper)
      } else {
        try cursor.skipValue()
      }
    }
    if let receiptType {
      // An app transaction, which may have an `environment` too.
      environment = receiptType
      if case .missing = signedDate { signedDate = creationDate }
    }
    if case .missing = signedDate {} else { hasSignedDate = true }
    // Xcode writes fractions, and so do some app transactions, of which no rule reads a date.
    let mayHaveFraction = environment == .xcode || receiptType != nil
    signedDateMs = mayHaveFraction ? signedDate.flooredInstantMs : signedDate.instantMs
  }

  /// The environment of what a notification is about.
  private mutating func readNested(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    guard try cursor.kind() == .object else { return try cursor.skipValue() }
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "environment" {
        environment = Environment(try keeper.read(&cursor))
      } else {
        try cursor.skipValue()
      }
    }
  }

  /// A token of an external purchase has no member for the environment; its id tells.
  private mutating func readToken(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    guard try cursor.kind() == .object else { return try cursor.skipValue() }
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "externalPurchaseId" {
        guard case .string(let id) = try keeper.read(&cursor) else { continue }
        environment = Environment(.string(ExternalPurchase.environment(ofID: id)))
      } else {
        try cursor.skipValue()
      }
    }
  }
}

extension LenientValue {
  /// Epoch milliseconds as `instantMs`, and of a number with decimals, which Xcode writes, the whole
  /// milliseconds before it.
  package var flooredInstantMs: Int64? {
    guard case .number(let token) = self, let point = token.firstIndex(of: UInt8(ascii: ".")) else {
      return instantMs
    }
    let decimals = token[(point + 1)...]
    guard decimals.allSatisfy({ (0x30...0x39).contains($0) }),
      let whole = JSONNumber.integer(JSONBytes(rebasing: token[..<point])),
      Timestamp.rangeMs.contains(whole)
    else { return nil }
    let isBelow = token.first == UInt8(ascii: "-") && decimals.contains { $0 != 0x30 }
    let floor = isBelow ? whole - 1 : whole
    return Timestamp.rangeMs.contains(floor) ? floor : nil
  }
}
