// Rule R6: the country and the user of a sale; and users that clients do not name.
import AppStore
package import Base

extension RevenueFold {
  // MARK: Uploads

  /// R6: the first country and the first user count; returns whether one was added.
  func add(_ place: Int, _ verification: Verification) throws -> Bool {
    guard let upload = verification.upload else { return false }
    var isChanged = false
    if store.sales[place].clientCountry == .none, upload.country != .none {
      store.update(place) { sale in
        sale.clientCountry = upload.country
        if sale.flags.contains(.isCountrySigned) { return }
        sale.country = upload.country
        sale.countryPosition = upload.position
      }
      try compareCountries(place, verification)
      isChanged = true
    }
    guard upload.user >= 0 else { return isChanged }
    if try addUser(place, upload, verification) { isChanged = true }
    return isChanged
  }

  private func addUser(
    _ place: Int, _ upload: UploadEvidence, _ verification: Verification
  ) throws -> Bool {
    let sale = store.sales[place]
    if !sale.userBasis.isByUpload {
      store.update(place) {
        $0.user = upload.user
        $0.userPosition = upload.position
        $0.userBasis = .upload
      }
      if sale.account >= 0 { try nameUser(ofAccountOf: place) }
      return true
    }
    if sale.userBasis == .takeover, sale.user == upload.user {
      store.update(place) {
        $0.userBasis = .upload
        $0.isChanged = true
      }
    }
    if sale.account >= 0 {
      let account = try accounts.place(ofAccount: sale.account)
      try nameUser(of: account, NamedUser(user: upload.user, position: upload.position))
      nameToken(of: account, sale.token)
    }
    if sale.user != upload.user, try !claim(place, upload) {
      try exceptions.add(
        .claimedByOtherUser, sale: sale, detail: try userIdentifier(upload.user),
        position: verification.position)
      try notice(replayOf: sale, verification)
      if sale.account < 0, !sale.flags.contains(.hasOtherUser) {
        store.update(place) {
          $0.flags.insert(.hasOtherUser)
          $0.isChanged = true
        }
      }
    }
    return false
  }

  /// R6: whether another user's upload claims the sale, or has already claimed it. The first upload after the erasure
  /// of the sale's user claims it; the sale keeps the name that the erasure gave.
  private func claim(_ place: Int, _ upload: UploadEvidence) throws -> Bool {
    let sale = store.sales[place]
    guard ErasedUser.erasure(of: try userIdentifier(sale.user)) != nil else { return false }
    let holder =
      try store.claim(place) ?? SaleClaim(user: sale.user, position: sale.userPosition)
    if holder.user == upload.user { return true }
    guard try wasErased(holder.user, holder.position, before: upload.position) else {
      return false
    }
    store.setClaim(place, SaleClaim(user: upload.user, position: upload.position))
    return true
  }

  /// R6: whether a user was erased before an upload at a position.
  /// - Parameter named: the position of an event of the user's ledger.
  func wasErased(_ user: Int32, _ named: Int, before position: Int) throws -> Bool {
    guard user >= 0, let erasure = ErasedUser.erasure(of: try userIdentifier(user)) else {
      return false
    }
    return isAfterErasure(position, erasure, named)
  }

  // MARK: Tokens

  /// R6: the first token counts; returns whether it may give the sale another user.
  func addToken(
    _ place: Int, _ tokens: some Sequence<Text>, _ verification: Verification
  ) throws -> Bool {
    let sale = store.sales[place]
    if sale.token != 0 { return false }
    for token in tokens {
      guard let token = TokenUser.canonical(token) else { continue }
      let user = sale.userBasis.isByUpload ? -1 : try user(ofToken: token)
      store.update(place) { sale in
        sale.token = TokenUser.key(token)
        sale.tokenUser = user
        sale.tokenPosition = user < 0 ? -1 : verification.position
        sale.isChanged = true
      }
      if sale.userBasis == .upload, sale.account >= 0 {
        nameToken(of: try accounts.place(ofAccount: sale.account), TokenUser.key(token))
      }
      return !sale.userBasis.isByUpload
    }
    return false
  }

  /// R6: the number of the user that a token names.
  func user(ofToken token: [UInt8]) throws -> Int32 {
    try withText(Array(TokenUser.prefix.utf8) + token) { try tokenUser($0) }
  }

  // MARK: Apple Accounts

  /// R6: the first Apple Account counts; returns whether one was added.
  func addAccount(
    _ place: Int, _ transaction: SignedTransaction, _ verification: Verification
  ) throws -> Bool {
    guard store.sales[place].account < 0,
      let account = try account(of: transaction, verification)
    else { return false }
    store.update(place) { $0.account = account }
    if store.sales[place].userBasis == .upload { try nameUser(ofAccountOf: place) }
    return true
  }

  /// The number of the account that a transaction names.
  func account(
    of transaction: SignedTransaction, _ verification: Verification
  ) throws -> Int32? {
    guard let text = transaction.appTransactionID else { return nil }
    let key = AccountKey(
      environment: verification.environment, bundle: verification.bundle, text: text)
    return accounts.accounts[try accounts.place(of: key)].id
  }

  /// R6: adds the users whom uploads of a sale name, and the sale's token, to its account.
  private func nameUser(ofAccountOf place: Int) throws {
    let sale = store.sales[place]
    let account = try accounts.place(ofAccount: sale.account)
    try nameUser(of: account, NamedUser(user: sale.user, position: sale.userPosition))
    if ErasedUser.erasure(of: try userIdentifier(sale.user)) != nil,
      let claim = try store.claim(place)
    {
      try nameUser(of: account, NamedUser(user: claim.user, position: claim.position))
    }
    if sale.flags.contains(.hasOtherUser), !accounts.accounts[account].hasUnknownUsers {
      accounts.update(account) { $0.hasUnknownUsers = true }
    }
    nameToken(of: account, sale.token)
  }

  private func nameToken(of account: Int, _ token: Int64) {
    let known = accounts.accounts[account]
    if known.token == 0, token != 0 {
      accounts.update(account) { $0.token = token }
    } else if known.differs(fromToken: token), !known.hasSeveralTokens {
      accounts.update(account) { $0.hasSeveralTokens = true }
    }
  }

  /// R6: adds the user of an upload that shows a sale of an account.
  private func nameUser(of account: Int, _ named: NamedUser) throws {
    let known = accounts.accounts[account]
    guard let first = known.first else { return accounts.setUsers(account, [named]) }
    if !known.hasLaterUsers, first.user == named.user, first.position <= named.position { return }
    let users = accounts.users(account)
    var kept: [NamedUser] = []
    let sorted = (users + [named]).sorted { $0.position < $1.position }
    for next in sorted {
      // If an erasure lies between two uploads of a user, the later one may take the account over.
      let isKnown = try kept.contains { earlier in
        try earlier.user == next.user
          && !sorted.contains { other in
            try wasErased(other.user, other.position, before: next.position)
              && !wasErased(other.user, other.position, before: earlier.position)
          }
      }
      if !isKnown { kept.append(next) }
    }
    if kept.count > AccountStore.userCountMax {
      if !known.hasUnknownUsers { accounts.update(account) { $0.hasUnknownUsers = true } }
    } else if kept != users {
      accounts.setUsers(account, kept)
    }
  }

  /// R6: the only user whom uploads of an account's sales name, and the first such upload. An erased user does not
  /// affect later uploads, except for what was first shown before these.
  private func user(
    of account: Int, firstShownAt firstPosition: Int
  ) throws -> NamedUser? {
    let known = accounts.accounts[account]
    if known.hasUnknownUsers { return nil }
    if !known.hasLaterUsers { return known.first }
    var living: [NamedUser] = []
    for named in accounts.users(account) {
      let others = try living.filter {
        try !wasErased($0.user, $0.position, before: named.position)
      }
      if others.count < living.count {
        if firstPosition <= named.position { break }
        living = others.filter { $0.user != named.user }
      }
      if !living.contains(where: { $0.user == named.user }) { living.append(named) }
    }
    return living.count == 1 ? living[0] : nil
  }

  // MARK: Derived users

  private typealias Settled = (user: Int32, position: Int, basis: UserBasis)

  private func settled(
    account: Int32, token: Int64, tokenUser: Int32, tokenPosition: Int, firstPosition: Int
  ) throws -> Settled {
    if account >= 0 {
      let place = try accounts.place(ofAccount: account)
      if !accounts.accounts[place].differs(fromToken: token),
        let named = try user(of: place, firstShownAt: firstPosition)
      {
        return (named.user, named.position, .account)
      }
    }
    return tokenUser < 0 ? (-1, -1, .none) : (tokenUser, tokenPosition, .token)
  }

  /// R6: gives a sale that no upload with a user shows the user derived from what is known so far.
  func settleUser(_ place: Int) throws {
    let sale = store.sales[place]
    if sale.userBasis.isByUpload { return }
    let settled = try settled(
      account: sale.account, token: sale.token, tokenUser: sale.tokenUser,
      tokenPosition: sale.tokenPosition, firstPosition: sale.firstPosition)
    if settled == (sale.user, sale.userPosition, sale.userBasis) { return }
    store.update(place) {
      ($0.user, $0.userPosition, $0.userBasis) = settled
      $0.isChanged = true
    }
  }

  /// As above for a subscription, whose user is that of the uploads since an erasure.
  func settleUser(_ place: Int, in subscriptions: SubscriptionStore) throws {
    let subscription = subscriptions.subscriptions[place]
    if subscription.userBasis.isByUpload { return }
    let settled = try settled(
      account: subscription.account, token: subscription.token,
      tokenUser: subscription.tokenUser, tokenPosition: subscription.tokenPosition,
      firstPosition: .max)
    if settled == (subscription.user, subscription.userPosition, subscription.userBasis) { return }
    subscriptions.update(place) {
      ($0.user, $0.userPosition, $0.userBasis) = settled
      $0.isChanged = true
    }
  }

  /// R6: settles the users derived from accounts, at the report's position: a later upload can give an earlier sale a
  /// user, and remove one.
  package func settleUsers() throws {
    try accounts.settle { changed in
      for place in changed {
        try store.fetchSales(ofAccount: accounts.accounts[place].id)
        try subscriptions?.fetchSubscriptions(ofAccount: accounts.accounts[place].id)
      }
      for place in store.sales.indices {
        let account = store.sales[place].account
        if account >= 0, accounts.isUnsettled(account: account) { try settleUser(place) }
      }
      guard let subscriptions else { return }
      for place in subscriptions.subscriptions.indices {
        let account = subscriptions.subscriptions[place].account
        if account >= 0, accounts.isUnsettled(account: account) {
          try settleUser(place, in: subscriptions)
        }
      }
    }
  }

  // MARK: Countries

  /// R12: reports a storefront and a client's first country that differ, once both are known.
  func compareCountries(_ place: Int, _ verification: Verification) throws {
    let sale = store.sales[place]
    guard sale.flags.contains(.isCountrySigned), sale.clientCountry != .none,
      sale.clientCountry != sale.country
    else { return }
    try exceptions.add(
      .countryConflict, sale: sale, detail: symbols.text(sale.clientCountry),
      position: verification.position)
  }
}

// MARK: - Users that clients do not name

/// The name of an erased user, or of an app account token that belonged to one (rule R6): `(redacted N)`, N being the
/// erasure's position; `(redacted N.2)` and so on for further tokens. For a user that only a token names, `token:`
/// precedes it.
package enum ErasedUser {
  private static let start = Array("(redacted ".utf8)
  /// Positions and counts do not have more digits.
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

/// A user of whom only an app account token is known (rule R6).
package enum TokenUser {
  /// The prefix of such a user's identifier. Clients may not send one.
  package static let prefix = "token:"

  /// R6: a token in the form in which it is compared: a UUID in lower case, or the name that an erasure gave; nil for
  /// any other text.
  package static func canonical(_ token: JSONBytes) -> [UInt8]? {
    if token.count == 36, let id = UUID16(String(decoding: token, as: UTF8.self)) {
      return Array(id.description.utf8)
    }
    return ErasedUser.isName(token) && token.first == UInt8(ascii: "(") ? Array(token) : nil
  }

  /// A number for comparing tokens, from the compared form: the same in every run, never 0.
  package static func key(_ token: [UInt8]) -> Int64 {
    let hash = token.withUnsafeBytes { $0.stableHash }
    return hash == 0 ? 1 : Int64(bitPattern: hash)
  }

  /// A user's identifier as stored in the ledger: the token of a token user in lower case, any other unchanged.
  package static func canonical(user identifier: String) -> String {
    guard identifier.hasPrefix(prefix) else { return identifier }
    return UUID16(String(identifier.dropFirst(prefix.count))).map { prefix + $0.description }
      ?? identifier
  }
}
