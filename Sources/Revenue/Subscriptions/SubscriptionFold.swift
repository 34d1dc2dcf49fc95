// Rule R13: folds statements and renewal information into subscriptions, and the period end of each sale.
package import AppStore

/// Renewal information with its context.
package struct RenewalEvidence {
  package var environment: Symbol
  package var bundle: Symbol
  /// Its time in epoch milliseconds; the minimum if it has none.
  package var statementMs: Int64
  package var position: Int

  package init(environment: Symbol, bundle: Symbol, statementMs: Int64, position: Int) {
    (self.environment, self.bundle) = (environment, bundle)
    (self.statementMs, self.position) = (statementMs, position)
  }
}

extension RevenueFold {
  // MARK: Replies

  /// R13: folds the rows shown by a reply; they must be in the order of their sales.
  func observeSubscriptions(
    _ rows: [ReplyRow], _ verification: Verification, in subscriptions: SubscriptionStore
  ) throws {
    var sale = -1
    seenSubscriptions.removeAll(keepingCapacity: true)
    for (index, entry) in shown.enumerated() {
      guard let expiresAtMs = rows[entry.row].expiresAtMs else { continue }
      if entry.sale != sale {
        sale = entry.sale
        noteEnd(of: sale, expiresAtMs, statementMs: verification.requestDateMs ?? .min)
      }
      try see(index, rows, verification, in: subscriptions)
    }
    for entry in seenSubscriptions {
      let shown = shown[entry.shown]
      subscriptions.update(entry.place) { $0.mark = -1 }
      let row = rows[shown.row]
      let period = period(
        of: row, offer: offer(of: row), sale: shown.sale,
        statementMs: verification.requestDateMs ?? .min, verification)
      try observe(entry.place, period, verification, in: subscriptions)
      if entry.tokenRow >= 0, let token = rows[entry.tokenRow].appAccountToken {
        try addToken(entry.place, token, verification, in: subscriptions)
        try settleUser(entry.place, in: subscriptions)
      }
    }
    let isAnyTakenOver = seenSubscriptions.contains {
      subscriptions.subscriptions[$0.place].isTakenOver
    }
    if isAnyTakenOver { try followTakeovers(rows, verification, in: subscriptions) }
  }

  /// As above, for every sale of a reply.
  private func followTakeovers(
    _ rows: [ReplyRow], _ verification: Verification, in subscriptions: SubscriptionStore
  ) throws {
    for entry in shown {
      let row = rows[entry.row]
      guard row.expiresAtMs != nil, let original = row.originalTransactionID ?? row.transactionID
      else { continue }
      let place = try subscriptions.place(
        of: SubscriptionKey(
          environment: verification.environment, bundle: verification.bundle, original: original),
        position: verification.position)
      followTakeover(of: entry.sale, subscriptions.subscriptions[place], verification)
    }
  }

  /// A subscription of the current reply, and the index in `shown` of the row that counts.
  struct SeenSubscription {
    var place: Int
    var shown: Int
    /// The start of the period that it shows.
    var startMs: Int64
    /// Among the rows with a token, the first in R2's order; −1 if there is none, or none is needed.
    var tokenRow = -1
  }

  /// How many of the last seen subscriptions are compared before the table is searched: a reply rarely has more.
  private static var comparedCount: Int { 4 }

  /// Of the rows that show a subscription, the one with the latest period start counts, then the first in R2's order.
  private func see(
    _ index: Int, _ rows: [ReplyRow], _ verification: Verification,
    in subscriptions: SubscriptionStore
  ) throws {
    let number = shown[index].row
    guard let original = rows[number].originalTransactionID ?? rows[number].transactionID else {
      return
    }
    let recent = seenSubscriptions.indices.suffix(Self.comparedCount).last {
      subscriptions.subscriptions[seenSubscriptions[$0].place].original.equals(original)
    }
    let startMs = Self.startMs(of: rows[number])
    let known: Int
    if let recent {
      known = recent
    } else {
      let place = try subscriptions.place(
        of: SubscriptionKey(
          environment: verification.environment, bundle: verification.bundle, original: original),
        position: verification.position)
      let mark = Int(subscriptions.subscriptions[place].mark)
      guard mark >= 0 else {
        subscriptions.update(place) { $0.mark = Int32(seenSubscriptions.count) }
        seenSubscriptions.append(SeenSubscription(place: place, shown: index, startMs: startMs))
        return seeToken(seenSubscriptions.count - 1, number, rows, in: subscriptions)
      }
      known = mark
    }
    seeToken(known, number, rows, in: subscriptions)
    let best = seenSubscriptions[known]
    if startMs < best.startMs { return }
    if startMs == best.startMs {
      let other = shown[best.shown].row
      guard ReplyRow.precedes(rows[number], number, rows[other], other) else { return }
    }
    seenSubscriptions[known].shown = index
    seenSubscriptions[known].startMs = startMs
  }

  /// R6: of one reply, the first token in R2's order counts.
  private func seeToken(
    _ known: Int, _ number: Int, _ rows: [ReplyRow], in subscriptions: SubscriptionStore
  ) {
    guard let token = rows[number].appAccountToken,
      subscriptions.subscriptions[seenSubscriptions[known].place].token == 0,
      TokenUser.canonical(token) != nil
    else { return }
    let other = seenSubscriptions[known].tokenRow
    if other >= 0, !ReplyRow.precedes(rows[number], number, rows[other], other) { return }
    seenSubscriptions[known].tokenRow = number
  }

  /// R13: the start of the period that a row shows. A row without any date shows no sale.
  private static func startMs(of row: ReplyRow) -> Int64 {
    row.purchaseDateMs ?? row.originalPurchaseDateMs ?? 0
  }

  private func offer(of row: ReplyRow) -> Subscription.Offer {
    if row.isTrialPeriod { return .trial }
    if row.isInIntroOfferPeriod { return .introductory }
    if row.hasPromotionalOffer { return .promotional }
    return row.hasOfferCode ? .offerCode : .none
  }

  // MARK: Signed transactions

  /// R13: folds one signed statement about a sale, if it is one of a subscription.
  func observeSubscription(
    _ place: Int, _ transaction: SignedTransaction, _ verification: Verification,
    in subscriptions: SubscriptionStore
  ) throws {
    let row = transaction.row
    guard let expiresAtMs = row.expiresAtMs, !transaction.isOfOtherType,
      let original = row.originalTransactionID ?? row.transactionID
    else { return }
    let signedAtMs = transaction.signedDateMs ?? .min
    noteEnd(of: place, expiresAtMs, statementMs: signedAtMs)
    let subscription = try subscriptions.place(
      of: SubscriptionKey(
        environment: verification.environment, bundle: verification.bundle, original: original),
      position: verification.position)
    let period = period(
      of: row, offer: offer(of: transaction), sale: place, statementMs: signedAtMs, verification)
    try observe(subscription, period, verification, in: subscriptions)
    try addSigned(subscription, transaction, verification, in: subscriptions)
    try settleUser(subscription, in: subscriptions)
    followTakeover(of: place, subscriptions.subscriptions[subscription], verification)
  }

  private func offer(of transaction: SignedTransaction) -> Subscription.Offer {
    if transaction.isFreeTrial { return .trial }
    switch transaction.offerType {
    case nil: return .none
    case 1: return .introductory
    case 2: return .promotional
    case 3: return .offerCode
    case 4: return .winBack
    default: return .other
    }
  }

  /// R6, R12 and R13: the first storefront takes precedence over every client's country, the first account and the
  /// first token come after every client's user.
  private func addSigned(
    _ place: Int, _ transaction: SignedTransaction, _ verification: Verification,
    in subscriptions: SubscriptionStore
  ) throws {
    let subscription = subscriptions.subscriptions[place]
    if !subscription.isCountrySigned,
      let country = transaction.storefront.flatMap({ Country.parse(alpha3: $0) })
    {
      let symbol = symbols.symbol(country.description)
      subscriptions.update(place) {
        $0.country = symbol
        $0.isCountrySigned = true
        $0.note(verification.position)
      }
    }
    if subscription.account < 0, let account = try account(of: transaction, verification) {
      subscriptions.update(place) {
        $0.account = account
        $0.note(verification.position)
      }
    }
    if let token = transaction.appAccountToken {
      try addToken(place, token, verification, in: subscriptions)
    }
  }

  private func addToken(
    _ place: Int, _ token: Text, _ verification: Verification,
    in subscriptions: SubscriptionStore
  ) throws {
    let subscription = subscriptions.subscriptions[place]
    guard subscription.token == 0, let token = TokenUser.canonical(token) else { return }
    let user = subscription.userBasis.isByUpload ? -1 : try user(ofToken: token)
    subscriptions.update(place) {
      $0.token = TokenUser.key(token)
      $0.tokenUser = user
      $0.tokenPosition = user < 0 ? -1 : verification.position
      $0.note(verification.position)
    }
  }

  // MARK: Statements of either kind

  private func period(
    of row: ReplyRow, offer: Subscription.Offer, sale place: Int, statementMs: Int64,
    _ verification: Verification
  ) -> Subscription.Period {
    let sale = store.sales[place]
    let startMs = Self.startMs(of: row)
    let product = row.productID ?? Text(start: nil, count: 0)
    return Subscription.Period(
      sale: sale.id,
      product: symbols.text(sale.product).equals(product) ? sale.product : symbols.symbol(product),
      startedAtMs: row.originalPurchaseDateMs ?? startMs, startMs: startMs,
      expiresAtMs: row.expiresAtMs ?? startMs, offer: offer, revokedAtMs: row.cancellationDateMs,
      statementMs: statementMs, position: verification.position)
  }

  /// R13: applies a statement: the latest period counts, and its newest statement. Country and user are those of the
  /// first upload that has one.
  private func observe(
    _ place: Int, _ period: Subscription.Period, _ verification: Verification,
    in subscriptions: SubscriptionStore
  ) throws {
    let subscription = subscriptions.subscriptions[place]
    if let upload = verification.upload {
      if subscription.country == .none, upload.country != .none {
        subscriptions.update(place) {
          $0.country = upload.country
          $0.note(verification.position)
        }
      }
      try addUser(place, upload, verification, in: subscriptions)
    }
    if let current = subscription.period,
      (period.startMs, period.statementMs) < (current.startMs, current.statementMs)
    {
      return
    }
    subscriptions.update(place) {
      $0.period = period
      $0.note(verification.position)
    }
  }

  /// R6: the first upload with a user counts; after the erasure of that user, the first one since.
  private func addUser(
    _ place: Int, _ upload: UploadEvidence, _ verification: Verification,
    in subscriptions: SubscriptionStore
  ) throws {
    let subscription = subscriptions.subscriptions[place]
    let isByUpload = subscription.userBasis.isByUpload
    guard upload.user >= 0, upload.user != subscription.user || !isByUpload else { return }
    let isTakenOver =
      try isByUpload
      && wasErased(subscription.user, subscription.userPosition, before: upload.position)
    guard !isByUpload || isTakenOver else { return }
    subscriptions.update(place) {
      $0.user = upload.user
      $0.userPosition = verification.position
      $0.userBasis = .upload
      if isTakenOver { $0.isTakenOver = true }
      $0.note(verification.position)
    }
  }

  /// R6: a sale that is first shown after its subscription was taken over from an erased user, and that no upload with
  /// a user has shown yet, belongs to the user who took it over.
  private func followTakeover(
    of place: Int, _ subscription: Subscription, _ verification: Verification
  ) {
    let sale = store.sales[place]
    guard subscription.isTakenOver, sale.firstPosition > subscription.userPosition,
      !sale.userBasis.isByUpload
    else { return }
    store.update(place) {
      $0.user = subscription.user
      $0.userPosition = subscription.userPosition
      $0.userBasis = .takeover
    }
    touch(place, verification)
  }

  /// R13: the newest statement with an expiry decides when the period of a sale ends.
  private func noteEnd(of place: Int, _ expiresAtMs: Int64, statementMs: Int64) {
    let sale = store.sales[place]
    if sale.periodEndMs != nil, statementMs < sale.periodEndStatementMs { return }
    store.update(place) {
      if $0.periodEndMs != expiresAtMs {
        $0.periodEndMs = expiresAtMs
        $0.isChanged = true
      }
      if $0.periodEndStatementMs != statementMs {
        $0.periodEndStatementMs = statementMs
        $0.isTimeChanged = true
      }
    }
  }

  // MARK: Renewal information

  /// R13: folds the renewal information of a reply that counts.
  func fold(_ renewals: [RenewalInfo], rows: [ReplyRow], _ verification: Verification) throws {
    let evidence = RenewalEvidence(
      environment: verification.environment, bundle: verification.bundle,
      statementMs: verification.notifiedAtMs ?? verification.requestDateMs ?? .min,
      position: verification.position)
    for renewal in renewals {
      if !renewal.isOutermost {
        try fold(renewal, evidence)
      } else if let original = onlyOriginal(of: rows) {
        var renewal = renewal
        renewal.originalTransactionID = original
        try fold(renewal, evidence)
      }
    }
  }

  /// The only subscription that a reply's rows show; nil if they show none or several.
  private func onlyOriginal(of rows: [ReplyRow]) -> Text? {
    var only: Text?
    for entry in shown where rows[entry.row].expiresAtMs != nil {
      guard let original = rows[entry.row].originalTransactionID ?? rows[entry.row].transactionID
      else { continue }
      if let only, !only.equals(original) { return nil }
      only = original
    }
    return only
  }

  /// R13: folds renewal information. The newest counts as a whole: what it does not contain is unknown.
  package func fold(_ renewal: RenewalInfo, _ evidence: RenewalEvidence) throws {
    guard let subscriptions, let original = renewal.originalTransactionID else { return }
    let place = try subscriptions.place(
      of: SubscriptionKey(
        environment: evidence.environment, bundle: evidence.bundle, original: original),
      position: evidence.position)
    if let current = subscriptions.subscriptions[place].renewal,
      evidence.statementMs < current.statementMs
    {
      return
    }
    var newest = Subscription.Renewal(
      statementMs: evidence.statementMs, position: evidence.position)
    newest.isAutoRenewing = renewal.isAutoRenewing
    newest.product = renewal.autoRenewProductID.map { symbols.symbol($0) } ?? .none
    newest.expirationIntent = renewal.expirationIntent.map { symbols.symbol($0) } ?? .none
    newest.isInBillingRetry = renewal.isInBillingRetry
    newest.gracePeriodExpiresAtMs = renewal.gracePeriodEndMs
    subscriptions.add(subscriptions.subscriptions[place].turns(to: newest))
    subscriptions.update(place) {
      $0.renewal = newest
      $0.note(evidence.position)
    }
  }
}

extension RevenueFold {
  /// Records that an event states by its type that a subscription ended. Renewal information of the same event must
  /// already be folded.
  package func noteExpiry(_ key: SubscriptionKey, position: Int) throws {
    guard let subscriptions else { return }
    let subscription = subscriptions.subscriptions[
      try subscriptions.place(of: key, position: position)]
    subscriptions.add([
      subscription.turn(.expiry, subscription.renewal, position: position)
    ])
  }
}

extension Subscription {
  /// Records that an event changed it.
  fileprivate mutating func note(_ position: Int) {
    updatedPosition = position
    isChanged = true
  }
}
