// Random histories that meet every rule often: few ids, so that sales, users and prices collide.
import Ledger

/// Makes a history from a seed. The same seed makes the same events.
package struct HistoryGenerator {
  private var random: SeededRandom
  private var eventCount = 0
  /// State of one world: positions of uploads, of verifications with a reply, and of uploads that wait for one.
  private struct World {
    var uploads: [Int] = []
    var replies: [Int] = []
    var waiting: [Int] = []
  }
  private var worlds: [World]
  private var world = 0
  private var uploads: [Int] {
    get { worlds[world].uploads }
    set { worlds[world].uploads = newValue }
  }
  private var replies: [Int] {
    get { worlds[world].replies }
    set { worlds[world].replies = newValue }
  }
  private var waiting: [Int] {
    get { worlds[world].waiting }
    set { worlds[world].waiting = newValue }
  }
  /// Worlds have different ids.
  private var firstID: Int { world * 100 }

  /// - Parameter worldCount: how many independent histories are interleaved, which share neither ids nor receipts.
  package init(seed: UInt64, worldCount: Int = 1) {
    random = SeededRandom(seed: seed)
    worlds = Array(repeating: World(), count: worldCount)
  }

  /// Skips positions of events from elsewhere.
  package mutating func passOver(_ count: Int) { eventCount += count }

  /// This many steps; an upload and its verification come as one step or as two.
  package mutating func steps(_ count: Int) -> [TestEvent] {
    (0..<count).map { _ in
      if worlds.count > 1 { world = random.below(worlds.count) }
      let step = step()
      if case .upload(let plan) = step {
        uploads.append(eventCount)
        switch plan.verification?.reply {
        case .json: replies.append(eventCount + 1)
        case .some: waiting.append(eventCount)
        case nil: break
        }
      } else if case .verified(let plan) = step, case .json = plan.reply {
        replies.append(eventCount)
      }
      eventCount += step.count
      return step
    }
  }

  private mutating func step() -> TestEvent {
    switch Int.random(in: 0..<100, using: &random) {
    case ..<52: return .upload(uploadPlan(with: reply()))
    case ..<60: return .upload(uploadPlan(with: nil))
    case ..<72: return uploads.isEmpty ? declaration() : verification()
    case ..<78:
      guard let earlier = replies.last, !uploads.isEmpty else { return declaration() }
      let chosen = random.chance(percent: 50) ? earlier : random.pick(replies)
      return .verified(
        VerificationPlan(
          upload: random.pick(uploads), occurredAtMs: instant(), reply: .reused(chosen)))
    case ..<90: return pendingOrAnswer()
    default: return declaration()
    }
  }

  // MARK: Uploads and verifications

  private mutating func uploadPlan(with reply: JSONText?) -> UploadPlan {
    var plan = UploadPlan(
      country: random.pick(["DE", "FR", "US", nil]),
      user: random.pick(["u1", "u2", "=user", "ü", nil, nil]), metadata: metadata(),
      occurredAtMs: instant(),
      receipt: Array("receipt \(firstID + Int.random(in: 0..<12, using: &random))".utf8))
    if let reply { plan.verification = verificationPlan(nil, reply) }
    return plan
  }

  private mutating func verification() -> TestEvent {
    .verified(verificationPlan(random.pick(uploads), reply()))
  }

  private mutating func verificationPlan(_ upload: Int?, _ reply: JSONText) -> VerificationPlan {
    var plan = VerificationPlan(
      upload: upload, occurredAtMs: instant(), reply: .json(reply))
    plan.endpoint = random.pick([.production, .production, .sandbox])
    let fate = Int.random(in: 0..<100, using: &random)
    if fate < 6 {
      (plan.outcome, plan.status, plan.reply) = (.invalid, 21003, .json(["status": 21003]))
    } else if fate < 10 {
      (plan.outcome, plan.status, plan.reply) = (.invalid, 21010, .json(["status": 21010]))
    } else if fate < 14 {
      (plan.outcome, plan.status, plan.reply) = (.unreachable, nil, .noJSON)
    } else if fate < 16 {
      (plan.outcome, plan.status, plan.reply) = (.unreachable, nil, .none)
    }
    return plan
  }

  /// A receipt that waits for the App Store, or the reply to one that does.
  private mutating func pendingOrAnswer() -> TestEvent {
    if !waiting.isEmpty, random.chance(percent: 50) {
      return .verified(verificationPlan(waiting.removeFirst(), reply()))
    }
    let id = firstID + Int.random(in: 0..<10, using: &random)
    let purchase = ReceiptFileText.Purchase(
      "\(id)", of: random.pick([nil, "\(firstID + 1)"]),
      line: random.pick([nil, Int64(70 + id)]),
      product: random.pick(["coins", "pro"]), on: "2026-01-0\(id % 9 + 1)")
    let file: ReceiptFileText =
      random.chance(percent: 30)
      ? .transaction(purchase)
      : .unified(purchase, environment: random.pick(["Production", "ProductionSandbox"]))
    let pending = TestEvent.pending(
      file, country: random.pick(["DE", nil]), user: random.pick(["u1", nil]), metadata: metadata())
    guard case .upload(var plan) = pending else { return pending }
    switch Int.random(in: 0..<10, using: &random) {
    case 0: plan.verification?.outcome = .invalid
    case 1:
      plan.verification?.outcome = .invalid
      plan.verification?.reason = "bundle_id_mismatch"
    case 2:
      plan.verification?.outcome = .unreachable
      plan.verification?.reason = "expired"
    default: break
    }
    return .upload(plan)
  }

  private mutating func instant() -> Int64 {
    ms("2026-01-01") + Int64.random(in: 0..<90, using: &random) * 86_400_000
      + Int64.random(in: 0..<3, using: &random)
  }

  // MARK: Replies

  private mutating func reply() -> JSONText {
    let rows = (0..<Int.random(in: 0..<5, using: &random)).map { _ in purchase() }
    let requested: [(String, JSONText)] =
      random.chance(percent: 80) ? [("request_date_ms", instantText())] : []
    switch Int.random(in: 0..<10, using: &random) {
    case 0:
      return .object([
        ("status", 0),
        ("receipt", JSONText.object([("bid", "old")] + requested).merged(with: purchase())),
        ("latest_receipt_info", purchase()),
      ])
    case 1:
      return .object([
        ("status", 21006), ("receipt", JSONText.object(requested).merged(with: purchase())),
        ("latest_expired_receipt_info", purchase()),
      ])
    default:
      let bundle: JSONText = random.pick(["app", "app", "zoo"])
      return .object([
        ("status", 0),
        ("environment", random.pick(["Production", "Production", "Sandbox", .absent])),
        ("latest_receipt_info", random.chance(percent: 40) ? [purchase(), purchase()] : .absent),
        (
          "receipt",
          .object([("bundle_id", bundle), ("in_app", .array(rows))] + requested)
        ),
      ])
    }
  }

  private mutating func instantText() -> JSONText { JSONText(stringLiteral: "\(instant())") }

  private mutating func purchase() -> JSONText {
    let id = firstID + Int.random(in: 0..<12, using: &random)
    var members: [(String, JSONText)] = [
      ("quantity", random.pick(["1", "1", "2", 3, "0", "x", .absent])),
      ("product_id", random.pick(["coins", "coins", "pro", "=hat, \"red\""])),
      ("transaction_id", JSONText(stringLiteral: "\(id)")),
      (
        "original_transaction_id",
        random.pick([JSONText(stringLiteral: "\(id)"), "\(firstID + 1)", .absent])
      ),
      ("purchase_date_ms", instantText()),
      (
        "original_purchase_date_ms",
        random.pick([JSONText(stringLiteral: "\(ms("2026-01-05"))"), .absent])
      ),
      (
        "web_order_line_item_id",
        random.chance(percent: 50)
          ? JSONText(stringLiteral: "\(70 + id)") : random.pick(["0", .absent])
      ),
    ]
    if random.chance(percent: 20) {
      members.append(("cancellation_date_ms", instantText()))
      members.append(("cancellation_reason", random.pick(["0", "1", .null])))
    }
    if random.chance(percent: 5) { members.append(("is_upgraded", "true")) }
    if random.chance(percent: 10) { members.append(("is_trial_period", "true")) }
    if random.chance(percent: 10) { members.append(("is_in_intro_offer_period", true)) }
    if random.chance(percent: 5) { members.append(("in_app_ownership_type", "FAMILY_SHARED")) }
    if random.chance(percent: 10) { members.append(("expires_date_ms", instantText())) }
    if random.chance(percent: 5) { members.append(("product_id", .null)) }
    return .object(members)
  }

  // MARK: Prices

  private mutating func metadata() -> JSONText? {
    if random.chance(percent: 30) { return nil }
    var members: [(String, JSONText)] = []
    if random.chance(percent: 40) { members += price() }
    if random.chance(percent: 10) { members.append(("product_id", "coins")) }
    if random.chance(percent: 60) {
      let entries = (0..<Int.random(in: 1..<4, using: &random)).map { _ -> JSONText in
        var entry = price()
        if random.chance(percent: 50) {
          entry.append(("product_id", random.pick(["coins", "pro"])))
          entry.append(("kind", random.pick([.absent, "regular", "intro"])))
        } else {
          let id = firstID + Int.random(in: 0..<12, using: &random)
          entry.append(("transaction_id", JSONText(stringLiteral: "\(id)")))
        }
        return .object(entry)
      }
      members.append(("prices", .array(entries)))
    }
    return .object(members)
  }

  private mutating func price() -> [(String, JSONText)] {
    [
      random.pick([
        ("price", "9.99"), ("price", "4.00"), ("price_micros", 1_500_000), ("price", "free"),
        ("price", 0),
      ]),
      ("currency", random.pick(["EUR", "usd", "JPY", "KWD", "XXX", .absent])),
    ]
  }

  /// The declarations of an app: none, all products that are sold, or some of them.
  private mutating func products() -> [AppRegistered.Product] {
    let coins = AppRegistered.Product(id: "coins", type: .consumable)
    let pro = AppRegistered.Product(id: "pro", type: .autoRenewable)
    let hat = AppRegistered.Product(id: "=hat, \"red\"", type: .consumable)
    return random.pick([[], [coins, pro, hat], [coins, pro]])
  }

  private mutating func declaration() -> TestEvent {
    switch Int.random(in: 0..<5, using: &random) {
    case 0:
      return .rates(
        source: random.pick(["bank", "other bank"]),
        ["2026-01-0\(Int.random(in: 1..<9, using: &random)) EUR USD 1.2", "2026-01-01 EUR JPY 160"])
    case 1:
      return .app(
        AppRegistered(
          appFamilyID: "0e7c2f4a-9a0b-4c5d-8e6f-112233445566", name: "App",
          bundleIDs: random.pick([["app"], ["app", "zoo"]]), products: products()))
    default:
      let country = random.pick(["DE", "FR", "-"])
      let day = Int.random(in: 1..<9, using: &random)
      return .prices(["coins \(country) EUR 2.\(day)0 2026-01-0\(day)", "pro - USD 5 2026-02-01"])
    }
  }
}

extension JSONText {
  /// An object with the members of both; the other's come last.
  func merged(with other: JSONText) -> JSONText {
    if text == "{}" { return other }
    return JSONText(raw: text.dropLast() + "," + other.text.dropFirst())
  }
}
