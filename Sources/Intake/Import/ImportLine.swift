// Parses and checks one line of an import file.
import AppStore
import Base
import Ledger

/// A line whose properties are all valid. It is valid as long as the parser's buffer.
enum ImportLine {
  case receipt(ReceiptLine)
  /// - Parameter occurredAtMs: epoch milliseconds, as given.
  case transactions(SignedUploadFields, occurredAtMs: Int64?)
  /// - Parameter occurredAtMs: epoch milliseconds, as given.
  case notification(SignedObject, occurredAtMs: Int64?)
}

/// A line with a receipt.
struct ReceiptLine {
  /// A reply of the App Store, as an operator recorded it.
  struct RecordedReply {
    /// Without white space.
    var bytes: JSONBytes
    /// What is kept of the version 1 notification that delivered it, one JSON object.
    var notification: [UInt8]?
    var outcome: Outcome
    var status: Int64?
    var fraudReason: String?
    var environment: String?
    var bundleID: String?
    var isLegacy: Bool
    /// Needed to compare it with the receipt.
    var reply: Reply
    var requestDateMs: Int64?
    /// As given, otherwise as inferred from the reply.
    var endpoint: Endpoint
    /// Epoch milliseconds.
    var occurredAtMs: Int64?
  }

  var fields: UploadFields
  /// Epoch milliseconds, as given.
  var occurredAtMs: Int64?
  var recorded: RecordedReply?
}

/// Reads one line after another and reuses its memory.
final class ImportLineParser {
  private var compact: [UInt8] = []
  private let keeper = TextKeeper()
  private var warnedNames: Set<String> = []
  /// Names are remembered so that each gets one warning. The limit is for hostile files, which may have any number of
  /// names.
  private static let warnedNamesMax = 100

  /// Warnings for the most recent line.
  private(set) var warnings: [FieldProblem] = []
  /// Why the most recent line is rejected.
  private(set) var problems: [FieldProblem] = []

  /// Parses a line and passes it to `body`. Returns nil and sets `problems` if the line is rejected.
  func read<Result>(
    _ line: UnsafeRawBufferPointer, _ body: (ImportLine) -> Result
  ) -> Result? {
    warnings.removeAll(keepingCapacity: true)
    problems.removeAll(keepingCapacity: true)
    compact.removeAll(keepingCapacity: true)
    keeper.removeAll()
    do throws(JSONError) {
      try JSONValidator.compact(line, to: &compact)
    } catch {
      problems = [FieldProblem("", .notJSON, "is not JSON: \(error)")]
      return nil
    }
    return compact.withUnsafeBytes { bytes -> Result? in
      var cursor = JSONCursor(bytes)
      do throws(JSONError) {
        guard try cursor.kind() == .object else {
          problems = [FieldProblem("", .wrongType, "is not a JSON object")]
          return nil
        }
        return try readObject(&cursor, bytes).map(body)
      } catch {
        problems = [FieldProblem("", .notJSON, "is not JSON: \(error)")]
        return nil
      }
    }
  }

  private func readObject(
    _ cursor: inout JSONCursor, _ bytes: JSONBytes
  ) throws(JSONError) -> ImportLine? {
    var reader = ClientFieldReader()
    var receipt = ReceiptReader(signedObjectAdvice: Self.signedObjectAdvice)
    var signed = SignedTransactionsReader()
    var notification = NotificationReader()
    var occurredAtMs: Int64?
    var recorded: ReceiptLine.RecordedReply?
    var legacyBody: JSONBytes?
    var environment: String?
    // A bare body, recognised by these two, has other properties of its own.
    var bareNames = (hasType: false, hasReply: false)
    let warnedBefore = warnedNames
    var isMisspelled = false
    var hasRareProperty = false
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if try reader.read(key, from: &cursor) { continue }
      if key == "receipt" {
        try receipt.read(from: &cursor, &reader)
      } else if key == "verification" {
        recorded = try readVerification(&cursor, &reader)
      } else if key == "occurred_at" {
        occurredAtMs = try readTime("occurred_at", &cursor, &reader)
      } else if key == "marketplace" {
        try readMarketplace(&cursor, &reader)
      } else if key == "signed_transactions" {
        try signed.readList(from: &cursor, &reader)
      } else if key == "app_transaction" {
        try signed.readAppTransaction(from: &cursor, &reader)
        hasRareProperty = true
      } else if key == "notification" {
        try notification.read(from: &cursor, &reader)
      } else if key == "notification_v1" {
        legacyBody = try cursor.consumeNull() ? nil : try cursor.readRaw()
      } else if key == "environment" {
        environment = try readEnvironment(&cursor, &reader)
        hasRareProperty = true
      } else if key == "user_identifer" {
        try reader.readMisspelledUserIdentifier(from: &cursor)
        isMisspelled = true
      } else {
        if key == "notification_type" { bareNames.hasType = true }
        if key == "unified_receipt" { bareNames.hasReply = true }
        warnUnknown(prefix: "", key)
        try cursor.skipValue()
      }
    }
    let subject = Subject([
      ("receipt", receipt.isGiven), ("signed_transactions", signed.isGiven),
      ("notification", notification.isGiven),
      (LegacyNotificationReader.field, legacyBody != nil),
    ])
    if subject.isNone, bareNames == (true, true) {
      (warnings, warnedNames) = ([], warnedBefore)
      reader.removeFields()
      reader.removeProblems { $0.field != "occurred_at" }
      return try readLegacy(bytes, occurredAtMs: occurredAtMs, isBare: true, reader)
    }
    if let problem = subject.problem { reader.add(problem) }
    if !receipt.isGiven || hasRareProperty { try warnIgnored(subject, bytes) }
    if isMisspelled, !subject.ignores("user_identifer") {
      warnOnce(
        "user_identifer", .misspelled,
        reader.takesMisspelledUserIdentifier
          ? "was read as user_identifier" : "was ignored: user_identifier is present too")
    }
    reader.removeProblems { subject.ignores($0.field) }
    if let legacyBody, subject.problem == nil {
      reader.removeFields()
      return try readLegacy(legacyBody, occurredAtMs: occurredAtMs, isBare: false, reader)
    }
    problems = reader.problems
    if let fields = receipt.fields(reader) {
      return .receipt(
        ReceiptLine(fields: fields, occurredAtMs: occurredAtMs, recorded: recorded))
    }
    if var fields = signed.fields(reader) {
      fields.environment = environment
      return .transactions(fields, occurredAtMs: occurredAtMs)
    }
    guard problems.isEmpty, let object = notification.object else { return nil }
    return .notification(object, occurredAtMs: occurredAtMs)
  }

  private static let signedObjectAdvice =
    "it belongs in signed_transactions, or in notification if it is a notification's signedPayload"

  /// What a line is about, and which of its other properties are ignored.
  private struct Subject {
    /// The property that the line is about; nil if it is not exactly one.
    private(set) var name: String?
    private(set) var problem: FieldProblem?
    private var ignored: [String] = []

    /// Whether it has none of them.
    private(set) var isNone = false

    private static let all = "receipt, signed_transactions, notification and notification_v1"
    private static let besideNotification = [
      "country_code", "identifier_for_vendor", "user_identifier", "user_identifer", "ip_address",
      "metadata", "verification", "app_transaction", "environment",
    ]

    /// - Parameter properties: the properties of which a line must have exactly one, and whether it has them.
    init(_ properties: [(name: String, isGiven: Bool)]) {
      let given = properties.filter(\.isGiven)
      if given.isEmpty {
        isNone = true
        problem = FieldProblem("", .missing, "has none of \(Self.all)")
      } else if given.count > 1 {
        problem = FieldProblem("", .invalidValue, "has more than one of \(Self.all)")
      } else {
        name = given[0].name
        switch name {
        case "receipt": ignored = ["app_transaction", "environment"]
        case "signed_transactions": ignored = ["verification"]
        default: ignored = Self.besideNotification
        }
      }
    }

    /// Whether a property, or a part of one, is ignored.
    func ignores(_ field: String) -> Bool {
      ignored.contains { field == $0 || field.hasPrefix($0 + ".") }
    }
  }

  /// Warns of ignored properties. Reads the line again, which rarely has a receipt.
  private func warnIgnored(_ subject: Subject, _ bytes: JSONBytes) throws(JSONError) {
    guard let name = subject.name else { return }
    var cursor = JSONCursor(bytes)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      let isNull = try cursor.kind() == .null
      try cursor.skipValue()
      guard !isNull, subject.ignores(key.string) else { continue }
      warnOnce(key.string, .unknownProperty, "was ignored: it does not belong next to \(name)")
    }
  }

  private func readMarketplace(
    _ cursor: inout JSONCursor, _ reader: inout ClientFieldReader
  ) throws(JSONError) {
    if try cursor.consumeNull() { return }
    let isString = try cursor.kind() == .string
    if isString, try cursor.readString() == "itunes" { return }
    if !isString { try cursor.skipValue() }
    reader.add(FieldProblem("marketplace", .invalidValue, "is not \"itunes\""))
  }

  /// An RFC 3339 string or epoch milliseconds; nil for `null` and for anything else, which is recorded as a
  /// problem.
  private func readTime(
    _ field: String, _ cursor: inout JSONCursor, _ reader: inout ClientFieldReader
  ) throws(JSONError) -> Int64? {
    var epochMs: Int64?
    switch try cursor.kind() {
    case .null:
      try cursor.skipValue()
      return nil
    case .string:
      let text = try cursor.readString().bytes
      epochMs = text.withUnsafeBytes { try? Timestamp.parse($0) }
    case .number:
      epochMs = JSONNumber.integer(try cursor.readNumber())
    default: try cursor.skipValue()
    }
    if let epochMs, Self.times.contains(epochMs) { return epochMs }
    let cause =
      switch epochMs {
      case let epochMs? where epochMs < Self.times.lowerBound:
        "is before 1970"
      case .some: "is after the year 9999"
      case nil:
        "is neither an RFC 3339 time with up to milliseconds nor an integer of epoch milliseconds"
      }
    reader.add(FieldProblem(field, .invalidTime, cause))
    return nil
  }

  /// The App Store sent nothing before 1970, and events cannot hold earlier times.
  private static let times = 0...Timestamp.rangeMs.upperBound

  /// The environment that an operator states for signed objects that name none.
  private func readEnvironment(
    _ cursor: inout JSONCursor, _ reader: inout ClientFieldReader
  ) throws(JSONError) -> String? {
    if try cursor.consumeNull() { return nil }
    if try cursor.kind() == .string {
      let name = try cursor.readString().string
      if EnvironmentName.isKnown(name) { return name }
    } else {
      try cursor.skipValue()
    }
    reader.add(
      FieldProblem("environment", .invalidValue, "is neither \"Production\" nor \"Sandbox\""))
    return nil
  }

  // MARK: Version 1 notifications

  /// Reads the body of a version 1 notification as a receipt with its recorded reply.
  /// - Parameters:
  ///   - isBare: whether the line is the body itself.
  ///   - reader: with the problems found so far.
  private func readLegacy(
    _ body: JSONBytes, occurredAtMs: Int64?, isBare: Bool, _ reader: ClientFieldReader
  ) throws(JSONError) -> ImportLine? {
    var reader = reader
    defer { problems = reader.problems }
    let legacy = try LegacyNotificationReader(body, keeper, &reader)
    var receipt = ReceiptReader(
      signedObjectAdvice: Self.signedObjectAdvice, field: LegacyNotificationReader.receiptField)
    guard let (bytes, endpoint) = try legacy.read(into: &receipt, &reader) else { return nil }
    let reply = try Reply(bytes, keeper, notification: keeper.keep(legacy.kept))
    var recorded = recordedReply(
      reply, bytes, endpoint: endpoint, field: LegacyNotificationReader.replyField, &reader)
    recorded.notification = legacy.kept
    let atMs = occurredAtMs ?? (isBare ? legacy.latestMs(in: reply) : nil)
    if atMs == nil, !reader.problems.contains(where: { $0.field == "occurred_at" }) {
      reader.add(
        FieldProblem(
          "occurred_at", .missing,
          isBare
            ? "is missing, and the body names no date"
            : "is missing: the body of a version 1 notification has no time"))
    }
    guard let fields = receipt.fields(reader) else { return nil }
    return .receipt(ReceiptLine(fields: fields, occurredAtMs: atMs, recorded: recorded))
  }

  // MARK: Recorded verification

  private func readVerification(
    _ cursor: inout JSONCursor, _ reader: inout ClientFieldReader
  ) throws(JSONError) -> ReceiptLine.RecordedReply? {
    if try cursor.consumeNull() { return nil }
    guard try cursor.kind() == .object else {
      try cursor.skipValue()
      reader.add(FieldProblem("verification", .wrongType, "is not an object"))
      return nil
    }
    var occurredAtMs: Int64?
    var endpoint: Endpoint?
    var replyBytes: JSONBytes?
    var isObject = false
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "reply" {
        isObject = try cursor.kind() == .object
        replyBytes = try cursor.readRaw()
        if !isObject {
          reader.add(FieldProblem("verification.reply", .wrongType, "is not an object"))
        }
      } else if key == "occurred_at" {
        occurredAtMs = try readTime("verification.occurred_at", &cursor, &reader)
      } else if key == "endpoint" {
        endpoint = try readEndpoint(&cursor, &reader)
      } else {
        warnUnknown(prefix: "verification.", key)
        try cursor.skipValue()
      }
    }
    guard let replyBytes else {
      reader.add(FieldProblem("verification.reply", .missing, "is missing"))
      return nil
    }
    let reply = try Reply(replyBytes, keeper)
    if !isObject { return nil }
    var recorded = recordedReply(
      reply, replyBytes, endpoint: endpoint, field: "verification.reply", &reader)
    recorded.occurredAtMs = occurredAtMs
    return recorded
  }

  /// - Parameters:
  ///   - endpoint: as given.
  ///   - field: the name of the reply in problems.
  private func recordedReply(
    _ reply: Reply, _ bytes: JSONBytes, endpoint: Endpoint?, field: String,
    _ reader: inout ClientFieldReader
  ) -> ReceiptLine.RecordedReply {
    // The reply also contains the name: an invalid one need not be stored twice.
    let environment = reply.environment.flatMap {
      $0.count <= EventLimits.environmentBytes ? $0 : nil
    }
    if let environment = text(environment), !EnvironmentName.isKnown(environment) {
      warnOnce(
        "\(field).environment \"\(PrintableText.shortened(environment))\"", .invalidValue,
        "is neither Production nor Sandbox: reports show its sales only with --environment"
      )
    }
    if endpoint == nil, reply.environment == nil {
      // Rule R1 takes the environment from either of them. Never guess production.
      let isLegacy = field == LegacyNotificationReader.replyField
      reader.add(
        isLegacy
          ? FieldProblem(
            "\(LegacyNotificationReader.field).environment", .missing,
            "is missing, and unified_receipt names none either")
          : FieldProblem(
            "verification.endpoint", .missing, "is missing, and the reply names no environment"))
    }
    return ReceiptLine.RecordedReply(
      bytes: bytes, outcome: reply.outcome, status: reply.status,
      fraudReason: reply.fraudReason, environment: text(environment),
      bundleID: text(reply.bundleID), isLegacy: reply.isLegacy, reply: reply,
      requestDateMs: reply.requestDateMs.flatMap { Self.times.contains($0) ? $0 : nil },
      endpoint: endpoint ?? reply.likelyEndpoint)
  }

  private func text(_ bytes: JSONBytes?) -> String? {
    bytes.map { String(decoding: $0, as: UTF8.self) }
  }

  private func readEndpoint(
    _ cursor: inout JSONCursor, _ reader: inout ClientFieldReader
  ) throws(JSONError) -> Endpoint? {
    if try cursor.consumeNull() { return nil }
    if try cursor.kind() == .string {
      let text = try cursor.readString()
      if text == "production" { return .production }
      if text == "sandbox" { return .sandbox }
    } else {
      try cursor.skipValue()
    }
    reader.add(
      FieldProblem(
        "verification.endpoint", .invalidValue, "is neither \"production\" nor \"sandbox\""))
    return nil
  }

  // MARK: Warnings

  private func warnUnknown(prefix: String, _ key: JSONString) {
    let name = String(decoding: key.bytes.prefix(256), as: UTF8.self)
    warnOnce(
      prefix + PrintableText.shortened(name), .unknownProperty, "is unknown and was ignored")
  }

  private func warnOnce(_ field: String, _ code: FieldProblem.Code, _ message: String) {
    guard warnedNames.count < Self.warnedNamesMax, warnedNames.insert(field).inserted else {
      return
    }
    warnings.append(FieldProblem(field, code, message))
    if warnedNames.count == Self.warnedNamesMax {
      warnings.append(
        FieldProblem("", .unknownProperty, "further unknown properties are not reported"))
    }
  }
}
