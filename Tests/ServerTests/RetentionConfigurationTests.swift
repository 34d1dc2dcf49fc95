// Settings in config.json for what is kept for a limited time, and for when erasures are carried out.
import Base
import Erasure
import Server
import TestSupport
import Testing

@Suite struct RetentionConfigurationTests {
  @Test(
    "a retention time is a whole number of days, weeks, months or years",
    arguments: [
      ("1d", 1), ("2w", 14), ("1m", 30), ("7y", 2555), ("100y", 36_500), ("36500d", 36_500),
      ("", nil), ("d", nil), ("0d", nil), ("01d", nil), ("-1d", nil), ("+1d", nil), ("1.5y", nil),
      ("1 d", nil), ("1D", nil), ("1h", nil), ("101y", nil), ("36501d", nil), ("1dd", nil),
      ("99999999999999999999y", nil), ("1d\u{301}", nil),
    ] as [(String, Int64?)])
  func retentionPeriod(_ text: String, _ days: Int64?) {
    let period = RetentionPeriod(text)
    expectEqual(period?.milliseconds, days.map { $0 * 86_400_000 })
    #expect(period == nil || period?.text == text)
  }

  @Test(
    "a time of day has two digits each for hour and minute",
    arguments: [
      ("00:00", 0), ("03:00", 180), ("23:59", 1439), ("24:00", nil), ("03:60", nil), ("3:00", nil),
      ("03:00:00", nil), ("off", nil), ("0３:00", nil), ("", nil),
    ] as [(String, Int64?)])
  func timeOfDay(_ text: String, _ minutes: Int64?) {
    let time = TimeOfDay(text)
    expectEqual(time?.milliseconds, minutes.map { $0 * 60_000 })
    #expect(time == nil || time?.text == text)
  }

  @Test func whatIsKeptForALimitedTimeAloneIsShown() throws {
    let ledger = try ConfiguredLedger()
    #expect(try ledger.file.read().retention.rules == nil)
    try ledger.write(#"{"retention":{"ip_address":"90d"}}"#)
    let configuration = try ledger.file.read()
    expectEqual(configuration.retention.rules?.ipAddressMs, Int64(7_776_000_000))
    #expect(configuration.retention.rules?.metadataMs == nil)
    expectEqual(configuration.masked["retention"]?.bytes, Array(#"{"ip_address":"90d"}"#.utf8))
    expectEqual(configuration.masked["erasures"]?.bytes, Array(#"{"daily_at":"03:00"}"#.utf8))
  }
}
