// Credentials files: what is accepted, what is refused, and that their content never shows.
import Replication
import TestSupport
import Testing

@Suite("credentials of a store") struct S3CredentialsTests {
  static func read(_ text: String) throws -> S3Credentials {
    try S3Credentials(parsing: Array(text.utf8))
  }

  @Test(
    "the AWS command line's format is read",
    arguments: [
      "[default]\naws_access_key_id = ID\naws_secret_access_key = a/b+c=\n",
      "# mine\r\n\r\n[default]\r\n; both\r\naws_secret_access_key=a/b+c=\r\n\taws_access_key_id=ID ",
    ])
  func forms(_ text: String) throws {
    try expectEqual(Self.read(text), S3Credentials(accessKeyID: "ID", secretAccessKey: "a/b+c="))
  }

  @Test("a session token is optional")
  func token() throws {
    let read = try Self.read(
      "[default]\naws_access_key_id=ID\naws_secret_access_key=S\naws_session_token=T//=\n")
    expectEqual(read, S3Credentials(accessKeyID: "ID", secretAccessKey: "S", sessionToken: "T//="))
  }

  static let refused: [(text: String, error: S3CredentialsError)] = [
    ("", .missing("aws_access_key_id")),
    ("[default]\naws_access_key_id=ID\n", .missing("aws_secret_access_key")),
    ("[other]\n", .line(1, .section)),
    ("[default]\n[default]\n", .line(2, .section)),
    ("\naws_access_key_id=ID\n", .line(2, .beforeSection)),
    ("[default]\nsecret word\n", .line(2, .form)),
    ("[default]\nregion=eu-west-1\n", .line(2, .name)),
    ("[default]\naws_access_key_id=\n", .line(2, .noValue)),
    ("[default]\naws_access_key_id=A\naws_access_key_id=B\n", .line(3, .twice)),
    ("[default]\naws_access_key_id=A B\naws_secret_access_key=S\n", .value),
    ("[default]\naws_access_key_id=A/B\naws_secret_access_key=S\n", .value),
    ("[default]\naws_access_key_id=A\naws_secret_access_key=é\n", .value),
    ("[default]\naws_access_key_id=A\naws_secret_access_key=S\u{0}\n", .value),
    (String(repeating: "#", count: 20_000), .tooLarge),
  ]

  @Test("anything else is refused with the line's number", arguments: refused)
  func refusal(_ text: String, _ error: S3CredentialsError) {
    #expect(throws: error) { try Self.read(text) }
  }

  @Test(
    "the environment has both, neither, or is refused",
    arguments: [
      (["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S"], nil),
      (["AWS_ACCESS_KEY_ID": "A"], .missing("AWS_SECRET_ACCESS_KEY")),
      (["AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "S"], .missing("AWS_ACCESS_KEY_ID")),
      (["AWS_ACCESS_KEY_ID": "A B", "AWS_SECRET_ACCESS_KEY": "S"], .value),
      (
        ["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "é"], .value
      ),
    ] as [([String: String], S3CredentialsError?)])
  func environment(_ values: [String: String], _ error: S3CredentialsError?) throws {
    if let error {
      #expect(throws: error) { try S3Credentials(environment: { values[$0] }) }
    } else {
      try expectEqual(
        S3Credentials(environment: { values[$0] }),
        S3Credentials(accessKeyID: "A", secretAccessKey: "S"))
    }
    #expect(try S3Credentials(environment: { _ in nil }) == nil)
  }

  @Test("bytes that are not text are refused")
  func bytes() {
    #expect(throws: S3CredentialsError.notText) { try S3Credentials(parsing: [0xFF]) }
  }

  @Test("neither a description nor an error shows the file's content")
  func secrecy() throws {
    let credentials = try #require(
      S3Credentials(accessKeyID: "KEYNAME", secretAccessKey: "VERYSECRET", sessionToken: "TOKEN"))
    var dumped = ""
    dump(credentials, to: &dumped)
    for text in ["\(credentials)", String(reflecting: credentials), dumped] {
      for secret in ["KEYNAME", "VERYSECRET", "TOKEN"] { #expect(!text.contains(secret)) }
    }
    let line = #expect(throws: S3CredentialsError.self) { try Self.read("[default]\nVERYSECRET\n") }
    #expect(try !"\(#require(line))".contains("VERYSECRET"))
  }
}
