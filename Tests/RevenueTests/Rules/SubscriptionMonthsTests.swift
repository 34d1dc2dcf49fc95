// R13 by month: subscribers gained and lost, and a month's revenue, computed by hand.
import Base
import Revenue
import TestSupport
import Testing

@Suite struct SubscriptionMonthsTests {
  private static func period(
    _ start: String, _ end: String, kind: SaleKind = .regular, returned: String? = nil,
    isRenewal: Bool = false, euros: Int64? = nil
  ) throws -> SubscriptionPeriod {
    let euro = try #require(Currency.parse("EUR"))
    return SubscriptionPeriod(
      startMs: ms(start), endMs: min(ms(end), returned.map(ms) ?? .max),
      lengthMs: ms(end) - ms(start), kind: kind, isRenewal: isRenewal,
      price: euros.map { ($0 * 1_000_000, euro) })
  }

  /// The months from January 2026 to that of a moment: `active +new ~renewed >converted !recovered -churned`.
  private static func months(
    _ subscriptions: [[SubscriptionPeriod]], at moment: String
  ) -> [String] {
    let momentMs = ms(moment)
    let starts = (1...12).map { ms("2026-\($0 < 10 ? "0" : "")\($0)-01") }
      .filter { $0 <= momentMs }
    var months = SubscriptionMonths(startsMs: starts, momentMs: momentMs)
    for periods in subscriptions { months.add(periods) }
    #expect(months.isBalanced)
    return months.months.map {
      "\($0.active) +\($0.new) ~\($0.renewed) >\($0.converted) !\($0.recovered) -\($0.churned)"
    }
  }

  @Test func aSubscriptionComesStaysAndGoes() throws {
    let periods = [
      try Self.period("2026-01-10", "2026-02-10"), try Self.period("2026-02-10", "2026-03-10"),
    ]
    expectEqual(
      Self.months([periods], at: "2026-04-15"),
      [
        "1 +1 ~0 >0 !0 -0", "1 +0 ~1 >0 !0 -0", "0 +0 ~0 >0 !0 -1", "0 +0 ~0 >0 !0 -0",
      ])
  }

  @Test func whatIsAfterTheMomentHasNotHappened() throws {
    let periods = [
      try Self.period("2026-01-10", "2026-02-10"), try Self.period("2026-02-10", "2026-03-10"),
    ]
    expectEqual(Self.months([periods], at: "2026-02-10"), ["1 +1 ~0 >0 !0 -0", "1 +0 ~0 >0 !0 -0"])
    expectEqual(
      Self.months([[periods[0]]], at: "2026-02-10"), ["1 +1 ~0 >0 !0 -0", "1 +0 ~0 >0 !0 -0"])
    expectEqual(
      Self.months([[periods[0]]], at: "2026-02-10T00:00:00.001Z"),
      ["1 +1 ~0 >0 !0 -0", "0 +0 ~0 >0 !0 -1"])
    expectEqual(Self.months([periods], at: "2026-01-10"), ["0 +0 ~0 >0 !0 -0"])
  }

  @Test func aTrialConvertsOnceItIsPaidFor() throws {
    let periods = [
      try Self.period("2026-01-01", "2026-01-08", kind: .trial),
      try Self.period("2026-01-08", "2026-02-08"), try Self.period("2026-02-08", "2026-03-08"),
    ]
    expectEqual(Self.months([periods], at: "2026-02-20"), ["1 +1 ~0 >1 !0 -0", "1 +0 ~1 >0 !0 -0"])
    let trials = [
      try Self.period("2026-01-01", "2026-01-08", kind: .trial),
      try Self.period("2026-01-08", "2026-02-08", kind: .trial),
    ]
    expectEqual(Self.months([trials], at: "2026-01-20"), ["1 +1 ~1 >0 !0 -0"])
  }

  @Test func aFirstPeriodThatWasSignedAsARenewalIsARecovery() throws {
    let periods = [
      try Self.period("2026-01-10", "2026-02-10", isRenewal: true),
      try Self.period("2026-02-10", "2026-03-10", isRenewal: true),
    ]
    expectEqual(
      Self.months([periods], at: "2026-03-15"),
      [
        "1 +0 ~0 >0 !1 -0", "1 +0 ~1 >0 !0 -0", "0 +0 ~0 >0 !0 -1",
      ])
  }

  @Test func aGapIsChurnThenRecovery() throws {
    let periods = [
      try Self.period("2026-01-01", "2026-02-01"),
      try Self.period("2026-02-01T00:00:00.001Z", "2026-03-01"),
    ]
    expectEqual(
      Self.months([periods], at: "2026-03-02"),
      [
        "1 +1 ~0 >0 !0 -0", "1 +0 ~0 >0 !1 -1", "0 +0 ~0 >0 !0 -1",
      ])
  }

  @Test func aTrialAfterAGapIsARecovery() throws {
    let periods = [
      try Self.period("2026-01-01", "2026-01-08", kind: .trial),
      try Self.period("2026-01-20", "2026-02-20"),
    ]
    expectEqual(Self.months([periods], at: "2026-02-01"), ["1 +1 ~0 >0 !1 -1", "1 +0 ~0 >0 !0 -0"])
  }

  @Test func aReturnEndsAPeriodEarly() throws {
    let periods = [try Self.period("2026-01-01", "2026-06-01", returned: "2026-02-03")]
    expectEqual(
      Self.months([periods], at: "2026-03-15"),
      [
        "1 +1 ~0 >0 !0 -0", "0 +0 ~0 >0 !0 -1", "0 +0 ~0 >0 !0 -0",
      ])
    let early = [try Self.period("2026-01-10", "2026-06-01", returned: "2026-01-05")]
    expectEqual(
      Self.months([early], at: "2026-01-20"), ["0 +1 ~0 >0 !0 -1"], "at its start at the earliest"
    )
  }

  @Test func anUpgradeCutsThePeriodBefore() throws {
    let periods = [
      try Self.period("2026-01-01", "2026-06-01"), try Self.period("2026-02-10", "2026-02-20"),
    ]
    expectEqual(
      Self.months([periods], at: "2026-03-15"),
      [
        "1 +1 ~0 >0 !0 -0", "0 +0 ~1 >0 !0 -1", "0 +0 ~0 >0 !0 -0",
      ])
  }

  @Test func ofPeriodsWithOneStartTheLongerCovers() throws {
    let periods = [
      try Self.period("2026-01-01", "2026-03-01", euros: 20),
      try Self.period("2026-01-01", "2026-01-05", euros: 5),
    ]
    expectEqual(Self.months([periods], at: "2026-02-10"), ["1 +1 ~1 >0 !0 -0", "1 +0 ~0 >0 !0 -0"])
    var months = SubscriptionMonths(
      startsMs: [ms("2026-01-01"), ms("2026-02-01")], momentMs: ms("2026-02-10"))
    months.add(periods)
    let euro = try #require(Currency.parse("EUR"))
    // 59 days are two months.
    expectEqual(months.months.map { $0.monthly[euro] }, [10_000_000, 10_000_000])
    expectEqual(months.months.map { $0.gross[euro] }, [25_000_000, nil])
  }

  @Test(
    arguments: [
      // days, micros, micros a month
      (31, 9_990_000, 9_990_000), (28, 9_990_000, 9_990_000), (27, 9_990_000, 9_990_000),
      // 30.4375 ÷ 26, ÷ 7, ÷ 1
      (26, 26_000_000, 30_437_500), (7, 1_990_000, 8_652_946), (1, 1_000_000, 30_437_500),
      (0, 1_000_000, 30_437_500), (365, 59_990_000, 4_999_167), (366, 12_000_001, 1_000_000),
      (91, 30_000_000, 10_000_000), (182, 30_000_000, 5_000_000), (61, 10_000_001, 5_000_000),
      (61, 10_000_003, 5_000_002),
      // More than 64 bits.
      (1, 9_000_000_000_000_000_000, 273_937_500_000_000_000_000),
    ] as [(Int64, Int64, Int128)])
  func amountsAreOfAMonth(days: Int64, micros: Int64, monthly: Int128) throws {
    let euro = try #require(Currency.parse("EUR"))
    let period = SubscriptionPeriod(
      startMs: 0, endMs: 0, lengthMs: days * 86_400_000, kind: .offer, price: (micros, euro))
    expectEqual(period.monthly?.micros, monthly)
  }

  @Test func halfADayCountsAsOne() throws {
    let euro = try #require(Currency.parse("EUR"))
    func monthly(_ lengthMs: Int64, _ kind: SaleKind = .regular) -> Int128? {
      SubscriptionPeriod(
        startMs: 0, endMs: 0, lengthMs: lengthMs, kind: kind, price: (16_000_000, euro)
      ).monthly?.micros
    }
    expectEqual(monthly(86_400_000 * 3 / 2 - 1), 487_000_000)
    expectEqual(monthly(86_400_000 * 3 / 2), 243_500_000)
    expectEqual(monthly(-86_400_000 * 9), 487_000_000, "an end before its start")
    #expect(monthly(86_400_000, .trial) == nil && monthly(86_400_000, .familyShared) == nil)
  }

  @Test func randomPeriodsAlwaysBalance() throws {
    var random = SeededRandom()
    for _ in 0..<300 {
      let subscriptions = try (0...random.below(4)).map { _ in
        try (0...random.below(6)).map { _ in
          let start = ms("2026-01-01") + Int64(random.below(150)) * 86_400_000
          let end = start + Int64(random.below(60) - 5) * 86_400_000
          let euro = try #require(Currency.parse("EUR"))
          return SubscriptionPeriod(
            startMs: start, endMs: end, lengthMs: end - start,
            kind: random.pick([.regular, .trial, .offer]), price: (1_000_000, euro))
        }.sorted { $0.startMs < $1.startMs }
      }
      let day = 1 + random.below(28)
      let moment = "2026-0\(1 + random.below(8))-\(day < 10 ? "0" : "")\(day)"
      _ = Self.months(subscriptions, at: moment)
    }
  }
}
