// Sales, lines and exceptions in memory, for tests of the rules without a ledger.
import AppStore
import Base
import Revenue
import TestSupport
import Testing

/// Sales in memory, and the rules over them.
final class Books {
  let state = MemoryState()
  private let rules: RevenueFold
  private(set) var position = 0

  init() { rules = state.fold() }

  /// The exceptions as `type detail`.
  var exceptions: [String] {
    state.exceptions.entries.map {
      "\($0.type.word) \(String(decoding: $0.detail.text, as: UTF8.self))"
    }
  }

  /// Applies a reply to an upload of a user, at a day.
  func add(
    _ reply: JSONText, user: String? = nil, country: String? = nil, metadata: JSONText = [:],
    on day: String = "2026-01-05"
  ) throws {
    let (replyBytes, metadataBytes) = (reply.bytes, metadata.bytes)
    try replyBytes.withUnsafeBytes { replyText in
      try metadataBytes.withUnsafeBytes { metadataText in
        let keeper = TextKeeper()
        let reply = try Reply(replyText, keeper)
        let upload = UploadEvidence(
          position: position, occurredAtMs: ms(day),
          country: country.map { state.symbols.symbol($0) } ?? .none,
          user: user.map { state.symbols.symbol($0) } ?? .none,
          metadata: metadataText)
        let verification = Verification(
          position: position + 1, occurredAtMs: ms(day), recordedAtMs: ms(day),
          requestDateMs: reply.requestDateMs, environment: state.symbols.symbol("Production"),
          bundle: state.symbols.symbol("app"), upload: upload, trust: .appStore)
        try rules.fold(verification, rows: reply.rows, renewals: reply.renewals)
        position += 2
      }
    }
  }

  /// Applies one event with signed transactions, at a day: a client's upload, or a notification.
  func add(
    signed payloads: [JSONText], isUpload: Bool = true, user: String? = nil,
    country: String? = nil, metadata: JSONText = [:], on day: String = "2026-01-06"
  ) throws {
    let keeper = TextKeeper()
    // Texts point into their payload.
    let texts = payloads.map { TextBytes($0.bytes) }
    let statements = try texts.map {
      SignedStatement(try SignedTransaction(payload: $0.text, keeper), trust: .appStore)
    }
    try metadata.bytes.withUnsafeBytes { metadataText in
      let upload = UploadEvidence(
        position: position, occurredAtMs: ms(day),
        country: country.map { state.symbols.symbol($0) } ?? .none,
        user: user.map { state.symbols.symbol($0) } ?? .none, metadata: metadataText)
      let event = SignedEvidence(
        position: position, recordedAtMs: ms(day), upload: isUpload ? upload : nil)
      try rules.fold(event, statements)
      position += 1
    }
    withExtendedLifetime(texts) {}
  }

  /// Applies signed renewal information.
  func add(renewal payload: JSONText) throws {
    try payload.bytes.withUnsafeBytes { text in
      let renewal = try SignedRenewal(payload: text, TextKeeper())
      let evidence = RenewalEvidence(
        environment: state.symbols.symbol("Production"), bundle: state.symbols.symbol("app"),
        statementMs: renewal.signedDateMs ?? .min, position: position)
      try rules.fold(renewal.info, evidence)
      position += 1
    }
  }

  /// Declares a price in euros, of all countries.
  func declare(_ product: String, micros: Int64, from day: String) throws {
    let currency = try #require(Currency.parse("EUR"))
    state.priceList.add(
      state.symbols.symbol(product),
      PriceList.Entry(
        country: .none, effectiveFromMs: ms(day), position: position, ordinal: 0,
        price: UnitPrice(micros: micros, currency: currency)))
    position += 1
    try state.derive()
  }

  /// The sales: key, kind, quantity, country, user, price basis, and the unit price if there is one.
  func sales() -> [String] {
    state.store.sales.indices.map { place in
      let sale = state.store.sales[place]
      func word(_ symbol: Symbol) -> String { symbol < 0 ? "-" : state.symbols.string(symbol) }
      let price = sale.price.map { " \(Amount.text(micros: $0.micros, currency: $0.currency))" }
      return "\(String(decoding: sale.key, as: UTF8.self)) \(sale.kind.word) \(sale.quantity) "
        + "\(word(sale.country)) \(word(sale.user)) \(sale.priceBasis.word)\(price ?? "")"
    }
  }

  /// The owners of the sales, then of the subscriptions, at the current position: key, user, basis and position.
  func owners() throws -> [String] {
    try rules.settleUsers()
    func line(_ key: Text, _ user: Int32, _ basis: UserBasis, _ position: Int) -> String {
      let user = user < 0 ? "-" : state.symbols.string(user)
      return "\(String(decoding: key, as: UTF8.self)) \(user) \(basis.word) \(position)"
    }
    return state.store.sales.map { line($0.key, $0.user, $0.userBasis, $0.userPosition) }
      + state.subscriptions.subscriptions.map {
        "of " + line($0.original, $0.user, $0.userBasis, $0.userPosition)
      }
  }

  /// The subscriptions that statements show: `of product start…expiry`, then what else is known, by name.
  func subscriptions() -> [String] {
    state.subscriptions.subscriptions.compactMap { subscription in
      guard let period = subscription.period else { return nil }
      func day(_ epochMs: Int64) -> String {
        CivilDate(dayNumber: Int(epochMs / 86_400_000)).description
      }
      func word(_ symbol: Symbol) -> String { state.symbols.string(symbol) }
      var words = [
        String(decoding: subscription.original, as: UTF8.self), word(period.product),
        "\(day(period.startMs))…\(day(period.expiresAtMs))",
      ]
      if period.startedAtMs != period.startMs { words.append("since \(day(period.startedAtMs))") }
      if period.offer != .none { words.append("\(period.offer.word)") }
      if let revoked = period.revokedAtMs { words.append("revoked \(day(revoked))") }
      if state.store.sales[period.sale].isUpgraded { words.append("upgraded") }
      if subscription.country != .none { words.append(word(subscription.country)) }
      if subscription.user >= 0 { words.append(word(subscription.user)) }
      if let renewal = subscription.renewal {
        words.append(renewal.isAutoRenewing.map { $0 ? "renews" : "ends" } ?? "unsaid")
        if renewal.product != .none { words.append("to \(word(renewal.product))") }
        if renewal.expirationIntent != .none {
          words.append("intent \(word(renewal.expirationIntent))")
        }
        if let retry = renewal.isInBillingRetry { words.append(retry ? "retry" : "no retry") }
        if let grace = renewal.gracePeriodExpiresAtMs { words.append("grace \(day(grace))") }
      }
      words.append("at \(subscription.position ?? -1)")
      return words.joined(separator: " ")
    }
  }

  /// The ends of the sales' periods: key and day; `-` for a sale without a period.
  func periodEnds() -> [String] {
    state.store.sales.map { sale in
      let day = sale.periodEndMs.map { CivilDate(dayNumber: Int($0 / 86_400_000)).description }
      return "\(String(decoding: sale.key, as: UTF8.self)) \(day ?? "-")"
    }
  }

  /// The journal: type, sale key, day, quantity and amount; `-` for an unknown one.
  func lines() -> [String] {
    var lines: [String] = []
    for sale in state.store.sales {
      state.store.forEachJournalLine(of: sale) { line in
        let amount = line.amountMicros.map { Amount.text(micros: $0, currency: nil) } ?? "-"
        let day = CivilDate(dayNumber: Int(line.dateMs / 86_400_000))
        lines.append(
          "\(line.type.word) \(String(decoding: sale.key, as: UTF8.self)) \(day) "
            + "\(line.quantity) \(amount)")
      }
    }
    return lines
  }
}

/// Bytes whose address stays the same as long as this lives.
private final class TextBytes {
  let text: UnsafeRawBufferPointer

  init(_ bytes: [UInt8]) {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    memory.copyBytes(from: bytes)
    text = UnsafeRawBufferPointer(memory)
  }

  deinit { text.deallocate() }
}
