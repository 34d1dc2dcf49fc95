// Where a copy goes, in config.json: what is accepted, and what is refused with which message.
import Base
import Foundation
import Server
import TestSupport
import Testing

@Suite struct ReplicationConfigurationTests {
  private static let secret = "sEcReT/sEcReT+sEcReT"
  private static let credentials =
    "[default]\naws_access_key_id = AKEXAMPLE\naws_secret_access_key = \(secret)\n"

  private func ledger() throws -> ConfiguredLedger {
    let ledger = try ConfiguredLedger()
    try ledger.write(Self.credentials, "s3")
    try ledger.write("[default]\naws_access_key_id = AKEXAMPLE\n", "half")
    try ledger.write(Self.credentials, "open", permissions: 0o644)
    return ledger
  }

  @Test func aCopyIsTakenWithItsDefaultsAndShownWithoutItsSecret() throws {
    let ledger = try ledger()
    try expectEqual(
      ledger.problems(
        #"{"replication":{"target":"s3://receipts-copy/shop","region":"eu-central-1","credentials_file":"s3"}}"#
      ), [])
    let configuration = try ledger.file.read()
    let replication = try #require(configuration.replication)
    #expect(replication.mode == .async && replication.syncLimitMs == 10_000)
    expectEqual(replication.target, "s3://receipts-copy/shop")
    #expect(throws: Never.self) { _ = try replication.store() }
    let shown = String(decoding: configuration.masked.bytes, as: UTF8.self)
    #expect(
      shown.contains(
        #""replication":{"target":"s3://receipts-copy/shop","region":"eu-central-1","credentials_file":"s3","mode":"async","sync_limit_ms":10000}"#
      ))
    #expect(!shown.contains(Self.secret))
  }

  @Test func withoutACopyNoneIsShown() throws {
    #expect(!String(decoding: Configuration().masked.bytes, as: UTF8.self).contains("replication"))
  }

  @Test(arguments: [
    (#"{}"#, "replication.target: it is neither s3://BUCKET/PREFIX nor file:///PATH"),
    (#"{"target":7}"#, "replication.target: must be a string"),
    (
      #"{"target":"ftp://copy"}"#,
      "replication.target: it is neither s3://BUCKET/PREFIX nor file:///PATH"
    ),
    (
      #"{"target":"file:///copy","region":"eu-central-1"}"#,
      "replication.region: cannot be used with a directory"
    ),
    (
      #"{"target":"s3://receipts-copy","region":"eu-central-1"}"#,
      "replication.credentials_file: is missing, and the environment has no AWS_ACCESS_KEY_ID"
    ),
    (
      #"{"target":"s3://receipts-copy","region":"eu-central-1","credentials_file":"half"}"#,
      "replication.credentials_file: aws_secret_access_key is missing"
    ),
    (
      #"{"target":"s3://receipts-copy","region":"eu-central-1","credentials_file":"open"}"#,
      "replication.credentials_file: other users can read or write the file: run chmod 600"
    ),
    (
      #"{"target":"s3://receipts-copy","credentials_file":"s3"}"#,
      "replication.region: the endpoint or region is refused: the region must be given"
    ),
    (
      #"{"target":"s3://receipts-copy","endpoint":"http://storage.example.com","credentials_file":"s3"}"#,
      "replication.endpoint: must be an https URL, or an http URL to a loopback address"
    ),
    (#"{"target":"file:///copy","mode":"both"}"#, "replication.mode: must be async or sync"),
    (
      #"{"target":"file:///copy","sync_limit_ms":99}"#,
      "replication.sync_limit_ms: must be an integer from 100 to 600000"
    ),
    (
      #"{"target":"file:///copy","mod":"sync"}"#,
      "replication.mod: there is no such setting; did you mean mode?"
    ),
  ])
  func whatCannotWorkIsRefused(_ text: String, _ problem: String) throws {
    let found = try ledger().problems(#"{"replication":\#(text)}"#)
    expectEqual(found, [problem])
    #expect(!found.joined().contains(Self.secret))
  }
}
