// Subscriptions and Apple Accounts as parts of a saved state.

extension Subscription {
  /// Writes everything but its number, which follows from the order.
  func save(_ writer: inout StateWriter) {
    writer.write(environment)
    writer.write(bundle)
    writer.write(original)
    writer.write(firstPosition)
    writer.write(country)
    writer.write(user)
    writer.write(isCountrySigned ? 1 : 0)
    writer.write(userBasis.rawValue)
    writer.write(userPosition)
    writer.write(account)
    writer.write(token)
    writer.write(tokenUser)
    writer.write(tokenPosition)
    writer.write(isTakenOver ? 1 : 0)
    writer.write(updatedPosition)
    writer.write(period == nil ? 0 : 1)
    if let period {
      writer.write(period.sale)
      writer.write(period.product)
      writer.write(period.startedAtMs)
      writer.write(period.startMs)
      writer.write(period.expiresAtMs)
      writer.write(period.offer.rawValue)
      writer.write(period.revokedAtMs)
      writer.write(period.statementMs)
      writer.write(period.position)
    }
    writer.write(renewal == nil ? 0 : 1)
    if let renewal {
      writer.write(renewal.statementMs)
      writer.write(renewal.position)
      writer.write(renewal.isAutoRenewing)
      writer.write(renewal.product)
      writer.write(renewal.expirationIntent)
      writer.write(renewal.isInBillingRetry)
      writer.write(renewal.gracePeriodExpiresAtMs)
    }
  }

  /// Reads what `save` writes.
  /// - Parameters:
  ///   - id: the subscription's number.
  ///   - arena: takes the text.
  init(
    id: Int, saleCount: Int, symbolCount: Int, _ reader: inout StateReader, _ arena: TextArena
  ) throws(RevenueStateError) {
    self.init(
      id: id, environment: try reader.symbol(below: symbolCount),
      bundle: try reader.symbol(below: symbolCount), original: arena.keep(try reader.text()),
      firstPosition: try reader.position())
    country = try reader.symbol(orNoneBelow: symbolCount)
    user = try reader.symbol(orNoneBelow: symbolCount)
    isCountrySigned = try reader.flag()
    userBasis = try reader.value()
    userPosition = try reader.position()
    account = Int32(try reader.integer(in: -1...Int64(Int32.max)))
    token = try reader.integer()
    tokenUser = try reader.symbol(orNoneBelow: symbolCount)
    tokenPosition = try reader.position()
    isTakenOver = try reader.flag()
    updatedPosition = try reader.position()
    if try reader.flag() {
      period = Period(
        sale: Int(try reader.integer(in: 0...Int64(saleCount) - 1)),
        product: try reader.symbol(below: symbolCount), startedAtMs: try reader.instant(),
        startMs: try reader.instant(), expiresAtMs: try reader.instant(),
        offer: try reader.value(), revokedAtMs: try reader.optionalInstant(),
        statementMs: try reader.integer(), position: try reader.position())
    }
    if try reader.flag() {
      var renewal = Renewal(statementMs: try reader.integer(), position: try reader.position())
      renewal.isAutoRenewing = try reader.optionalFlag()
      renewal.product = try reader.symbol(orNoneBelow: symbolCount)
      renewal.expirationIntent = try reader.symbol(orNoneBelow: symbolCount)
      renewal.isInBillingRetry = try reader.optionalFlag()
      renewal.gracePeriodExpiresAtMs = try reader.optionalInstant()
      self.renewal = renewal
    }
  }
}

extension Account {
  /// Writes everything but its number, which follows from the order.
  func save(_ users: [NamedUser], _ writer: inout StateWriter) {
    writer.write(environment)
    writer.write(bundle)
    writer.write(text)
    writer.write(token)
    writer.write(hasSeveralTokens ? 1 : 0)
    writer.write(hasUnknownUsers ? 1 : 0)
    writer.write(users.count)
    for named in users {
      writer.write(named.user)
      writer.write(named.position)
    }
  }

  /// Reads what `save` writes.
  static func load(
    id: Int32, symbolCount: Int, _ reader: inout StateReader, _ arena: TextArena
  ) throws(RevenueStateError) -> (Account, users: [NamedUser]) {
    var account = Account(
      id: id, environment: try reader.symbol(below: symbolCount),
      bundle: try reader.symbol(below: symbolCount), text: arena.keep(try reader.text()))
    account.token = try reader.integer()
    account.hasSeveralTokens = try reader.flag()
    account.hasUnknownUsers = try reader.flag()
    let users = try reader.list { reader throws(RevenueStateError) in
      NamedUser(user: try reader.symbol(below: symbolCount), position: try reader.position())
    }
    account.first = users.first
    account.hasLaterUsers = users.count > 1
    return (account, account.hasLaterUsers ? users : [])
  }
}

extension StateWriter {
  /// Writes whether there is a value, then the value.
  mutating func write(_ value: Int64?) {
    write(value == nil ? 0 : 1)
    if let value { write(value) }
  }

  mutating func write(_ flag: Bool?) { write(flag.map { $0 ? 1 : 0 } ?? -1) }
}

extension StateReader {
  mutating func flag() throws(RevenueStateError) -> Bool { try integer(in: 0...1) == 1 }

  mutating func optionalFlag() throws(RevenueStateError) -> Bool? {
    let value = try integer(in: -1...1)
    return value < 0 ? nil : value == 1
  }

  /// The dates that receipts and replies may contain: the years 0001 to 9999.
  static var instantsMs: ClosedRange<Int64> { -62_135_596_800_000...253_402_300_799_999 }

  mutating func instant() throws(RevenueStateError) -> Int64 {
    try integer(in: Self.instantsMs)
  }

  mutating func optionalInstant() throws(RevenueStateError) -> Int64? {
    try flag() ? try instant() : nil
  }
}
