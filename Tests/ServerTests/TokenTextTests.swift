// Generated tokens look like secrets.
import Base
import Intake
import Server
import Testing

@Suite struct TokenTextTests {
  @Test func randomKeysAreNotShown() {
    var shown = 0
    for _ in 0..<2000 {
      let token = TokenText.make()
      #expect(SecretText.isLikely(token))
      if !SecretText.isLikely(token.dropFirst(4)) { shown += 1 }
    }
    // Without a prefix, a token is recognized only by chance.
    #expect(shown <= 40)
  }
}
