// What an operator may configure of the client, and what is refused.
import AppStore
import HTTPClient
import TestSupport
import Testing

@Suite("The App Store client's options") struct ClientOptionsTests {
  @Test(
    "a URL is https, or http on loopback",
    arguments: [
      "https://buy.itunes.apple.com/verifyReceipt", "https://example.com:8443/a/b?c=d",
      "HTTPS://example.com/", "http://127.0.0.1:8080/verifyReceipt", "http://127.1.2.3/",
      "http://localhost:1/", "http://LOCALHOST/", "http://[::1]:8080/", "https://[2001:db8::1]/",
    ])
  func good(_ url: String) throws {
    for endpoint in AppStoreEndpoint.allCases {
      var options = VerifyReceiptOptions()
      if endpoint == .production { options.productionURL = url } else { options.sandboxURL = url }
      try options.check()
    }
  }

  static let refusedURLs: [(String, HTTPURL.Fault)] = [
    ("", .notAURL), ("verifyReceipt", .notAURL), ("https://", .notAURL),
    ("https://exa mple.com/", .notAURL), ("https://example.com/a b", .notAURL),
    ("https://example.com:99999/", .notAURL), ("https://example.com/\u{0}x", .notAURL),
    ("https://example.com/\r\nHost: x", .notAURL),
    ("https://example.com/" + String(repeating: "a", count: 4_000), .notAURL),
    ("https://user:hunter2@example.com/", .credentials),
    ("https://hunter2@example.com/", .credentials),
    ("http://hunter2:@127.0.0.1/", .credentials),
    ("http://example.com/", .remoteHTTP), ("http://127.0.0.1.example.com/", .remoteHTTP),
    ("http://localhost.example.com/", .remoteHTTP), ("http://10.0.0.1/", .remoteHTTP),
    ("http://0.0.0.0/", .remoteHTTP), ("http://[::]/", .remoteHTTP), ("http://[::2]/", .remoteHTTP),
    ("ftp://example.com/", .scheme), ("file:///etc/passwd", .scheme),
    ("gopher://127.0.0.1/", .scheme),
  ]

  @Test("another URL is refused, and not shown", arguments: refusedURLs)
  func refused(_ url: String, _ fault: HTTPURL.Fault) {
    var options = VerifyReceiptOptions()
    options.sandboxURL = url
    let error = VerifyReceiptOptionsError.url(.sandbox, fault)
    #expect(throws: error) { try options.check() }
    #expect(throws: error) { _ = try VerifyReceiptClient(options) }
    #expect(!error.description.contains("hunter2"))
    #expect(!error.description.contains("example.com"))
  }

  @Test("numbers have limits")
  func numbers() throws {
    let changes: [(WritableKeyPath<VerifyReceiptOptions, Int>, good: [Int], bad: [Int])] = [
      (\.connectTimeoutMs, [1, 600_000], [0, -1, 600_001, .max]),
      (\.timeoutMs, [1, 600_000], [0, -1, 600_001, .min]),
      (\.answerBytesMax, [1_024, 1 << 30], [0, 1_023, .max]),
      (\.callsMax, [1, 1_024], [0, -5, 1_025]),
    ]
    for (path, good, bad) in changes {
      for value in good + bad {
        var options = VerifyReceiptOptions()
        options[keyPath: path] = value
        let isRefused = (try? options.check()) == nil
        expectEqual(isRefused, bad.contains(value), "\(path) \(value)")
      }
    }
  }

  @Test("the message of each fault")
  func words() {
    let faults: [(VerifyReceiptOptionsError, String)] = [
      (
        .url(.production, .remoteHTTP),
        "configure the App Store client: URL of production: http is allowed only to loopback addresses; "
          + "receipts need https"
      ),
      (
        .outOfRange("number of calls at once", 0, 1...1_024),
        "configure the App Store client: number of calls at once: 0 is not from 1 to 1024"
      ),
      (.noResources("no memory"), "start the App Store client: no memory"),
    ]
    for (error, text) in faults { expectEqual(error.description, text) }
  }
}
