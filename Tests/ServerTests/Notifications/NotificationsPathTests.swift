// The path of notifications in config.json.
import Server
import TestSupport
import Testing

@Suite struct NotificationsPathTests {
  @Test(arguments: [
    "", "hook", "/", "//", "/hook/", "/a//b", "/a/./b", "/..", "/a?b", "/a#b", "/a%20b", "/a b",
    "/ä",
    "/" + String(repeating: "a", count: 255),
  ])
  func aPathOfNotificationsHasOneSpelling(_ path: String) throws {
    try expectEqual(
      ConfiguredLedger().problems(#"{"notifications":{"path":"\#(path)"}}"#),
      [
        "notifications.path: must be a path such as /app_store/notifications: at most 255 letters, "
          + "digits and the characters - . _ ~ between slashes"
      ])
  }

  @Test(arguments: ["client", "v1", "healthz", "readyz", "metrics"])
  func aPathOfNotificationsTakesNoOtherPathAway(_ first: String) throws {
    for path in ["/\(first)", "/\(first)/notifications"] {
      try expectEqual(
        ConfiguredLedger().problems(#"{"notifications":{"path":"\#(path)"}}"#),
        [
          "notifications.path: must not begin with /\(first), which the server needs for itself"
        ])
    }
    #expect(
      try ConfiguredLedger().problems(#"{"notifications":{"path":"/\#(first)x"}}"#).isEmpty)
  }
}
