// When customers' apps upload, from which device, how old the receipt is; all uploads in order.
import AppStoreAuthority
import ProgramSupport

struct UploadPlanner {
  let simulation: Simulation
  let customer: Customer
  private var random: RandomSource
  private var uploads: [PlannedUpload] = []

  init(simulation: Simulation, customer: Customer) {
    self.simulation = simulation
    self.customer = customer
    random = RandomSource(seed: simulation.seed, 11, UInt64(customer.index))
  }

  private var uploadLimit: Int { simulation.isSmall ? 6 : 40 }

  /// The uploads within the simulation's time, in order.
  mutating func plan() -> [PlannedUpload] {
    if !customer.isLegacy, random.chance(30) { visit(atMs: customer.arrivalMs) }
    for index in customer.purchases.indices { follow(index) }
    visitNowAndThen()
    if let last = customer.purchases.map(\.purchasedMs).max(), random.chance(70) {
      visit(atMs: last + Int64(random.within(90 * 24...320 * 24)) * hourMs, isReinstall: true)
    }
    uploads.sort { ($0.atMs, $0.device, $0.prompt ?? -1) < ($1.atMs, $1.device, $1.prompt ?? -1) }
    repeatSome()
    return Array(
      uploads.filter { (simulation.fromMs..<simulation.toMs).contains($0.atMs) }
        .prefix(uploadLimit))
  }

  /// Uploads that a purchase and its fate bring about.
  private mutating func follow(_ index: Int) {
    let purchase = customer.purchases[index]
    let isRenewal = purchase.transaction != purchase.original
    if isRenewal ? random.chance(330) : random.chance(930) {
      let delayMs =
        isRenewal
        ? Int64(random.within(60...6 * 86_400)) * secondMs
        : Int64(random.within(2_000...60_000))
      let atMs = purchase.purchasedMs + delayMs + Int64(random.below(1000))
      append(atMs: atMs, receiptMs: purchase.purchasedMs + 1000, prompt: index)
    }
    let laterMs = Int64(random.within(2...20 * 24)) * hourMs
    if purchase.cancelledMs < .max, random.chance(650) {
      visit(atMs: purchase.cancelledMs + laterMs)
    }
    if purchase.reversedMs < .max, random.chance(800) { visit(atMs: purchase.reversedMs + laterMs) }
    if purchase.restoredMs < .max, random.chance(900) {
      append(
        atMs: purchase.restoredMs + Int64(random.within(1500...40_000)),
        receiptMs: purchase.restoredMs + 1000, prompt: index)
    }
    if purchase.secondSinceMs < .max, random.chance(800) {
      let atMs = purchase.secondSinceMs + Int64(random.within(1...120)) * secondMs
      append(atMs: atMs, device: 1, receiptMs: atMs / secondMs * secondMs, prompt: index)
    }
  }

  private mutating func visitNowAndThen() {
    var atMs = customer.arrivalMs
    let visits = random.index(weighted: [38, 24, 15, 10, 7, 6])
    for _ in 0..<visits {
      atMs += Int64(random.within(2 * 24...80 * 24)) * hourMs + Int64(random.below(3_600_000))
      visit(atMs: atMs)
    }
  }

  /// An upload at a launch: of a fresh receipt, or of the one that the device still has.
  private mutating func visit(atMs: Int64, isReinstall: Bool = false) {
    let freshMs = (atMs - Int64(random.within(500...4000))) / secondMs * secondMs
    let known = customer.purchases.filter { $0.purchasedMs + 1000 <= atMs }
    guard !isReinstall, let latestMs = known.map(\.purchasedMs).max(), random.chance(350) else {
      append(atMs: atMs, receiptMs: freshMs)
      return
    }
    // Renewals reach the App Store without the device: its receipt may miss some.
    let heldMs = random.chance(600) ? latestMs : random.pick(known).purchasedMs
    append(atMs: atMs, receiptMs: heldMs + 1000)
  }

  private mutating func append(
    atMs: Int64, device: Int = 0, receiptMs: Int64, prompt: Int? = nil
  ) {
    var prompt = prompt
    if customer.isLegacy, prompt == nil {
      // A transaction receipt always is some purchase's: the latest one's.
      prompt = customer.purchases.indices.filter {
        customer.purchases[$0].purchasedMs <= receiptMs
      }.max { customer.purchases[$0].purchasedMs < customer.purchases[$1].purchasedMs }
      guard prompt != nil else { return }
    }
    uploads.append(
      PlannedUpload(atMs: atMs, device: device, receiptMs: receiptMs, prompt: prompt))
  }

  /// A client that got no answer sends the same again.
  private mutating func repeatSome() {
    for upload in uploads where random.chance(25) {
      var again = upload
      again.atMs += Int64(random.within(800...90_000))
      uploads.append(again)
    }
    uploads.sort { ($0.atMs, $0.device, $0.prompt ?? -1) < ($1.atMs, $1.device, $1.prompt ?? -1) }
  }
}

struct ScheduledUpload: Sendable {
  let atMs: Int64
  let customer: Int32
  let ordinal: Int32
}

struct Schedule: Sendable {
  /// 16 bytes an upload: all that is held of the history at any time.
  let uploads: [ScheduledUpload]
  let customerCount: Int

  init(_ simulation: Simulation, uploadCount: Int) {
    var uploads: [ScheduledUpload] = []
    uploads.reserveCapacity(uploadCount)
    var customer = 0
    while uploads.count < uploadCount {
      let planned = simulation.customer(customer).uploads
      for (ordinal, upload) in planned.prefix(uploadCount - uploads.count).enumerated() {
        uploads.append(
          ScheduledUpload(
            atMs: upload.atMs, customer: Int32(customer), ordinal: Int32(ordinal)))
      }
      customer += 1
    }
    uploads.sort { ($0.atMs, $0.customer, $0.ordinal) < ($1.atMs, $1.customer, $1.ordinal) }
    self.uploads = uploads
    customerCount = customer
  }
}
