// A changed config.json takes effect in a running server.
import AppStore
import Base
import HTTPClient
import Ledger

/// What a configuration is handed to.
struct ConfigurationTargets: Sendable {
  let workflow: UploadWorkflow
  let appStore: ReplaceableAppStore
  let authenticator: TokenAuthenticator
  let http: HTTPServer
  /// Checks signatures by the configuration that the others were made with.
  let checker: ReceiptVerifier
  let webhooks: WebhookService
  /// Records whom the server will trust, before it does; nothing where that is what it trusts already.
  let recordTrust: @Sendable (_ new: TrustDeclared, _ old: TrustDeclared) throws -> Void
}

/// Hands each new configuration to those whom it concerns; one that came before they were there is kept.
final class ConfigurationChanges: Sendable {
  private struct State {
    var targets: ConfigurationTargets?
    var inEffect = Configuration()
    var checker: ReceiptVerifier?
    var early: Configuration?
  }

  private let state = Monitor(State())
  // Held while one takes effect, so that the newest is the last to.
  private let applying = Monitor(())
  private let log: OperatorLog

  init(log: @escaping OperatorLog) { self.log = log }

  /// - Parameter configuration: the one that the targets were made with.
  func begin(_ targets: ConfigurationTargets, from configuration: Configuration) {
    applying.withLock { _ in
      let early = state.withLock { state in
        state.targets = targets
        state.inEffect = configuration
        state.checker = targets.checker
        return state.early.take()
      }
      if let early { apply(early) }
    }
  }

  func adopt(_ new: Configuration) { applying.withLock { _ in apply(new) } }

  private func apply(_ changed: Configuration) {
    let known = state.withLock { state -> (ConfigurationTargets, Configuration, ReceiptVerifier)? in
      guard let targets = state.targets else {
        state.early = changed
        return nil
      }
      return (targets, state.inEffect, state.checker ?? targets.checker)
    }
    guard let (targets, old, oldChecker) = known else { return }
    var new = changed
    let checker = recordedChecker(&new, old, oldChecker, targets)
    targets.authenticator.replace(new.tokens)
    if new.appStore != old.appStore {
      do { try targets.appStore.replace(new.appStore) } catch {
        log(.error, "config.json: app_store: \(error); the old endpoints stay in effect")
        recordKept(old.appStore, insteadOf: new.appStore, new.trust, checker ?? oldChecker, targets)
        new.appStore = old.appStore
      }
    }
    targets.workflow.apply(new, checker: checker)
    targets.http.replaceNotificationsPath(new.notifications.path)
    if new.trustedProxies != old.trustedProxies {
      do { try targets.http.replaceTrustedProxies(new.trustedProxies) } catch {
        log(.error, "config.json: trusted_proxies: \(error); the old ones stay in effect")
        new.trustedProxies = old.trustedProxies
      }
    }
    targets.webhooks.apply(new)
    state.withLock { state in
      state.inEffect = new
      if let checker { state.checker = checker }
    }
    log(.information, "config.json: the change is in effect")
  }

  /// Records that the old endpoints stay in effect after the new ones were recorded.
  private func recordKept(
    _ kept: Configuration.AppStore, insteadOf recorded: Configuration.AppStore,
    _ trust: Configuration.Trust, _ checker: ReceiptVerifier, _ targets: ConfigurationTargets
  ) {
    do {
      try targets.recordTrust(
        TrustDeclared(kept, trust, checker), TrustDeclared(recorded, trust, checker))
    } catch { log(.error, "config.json: app_store: cannot record the old endpoints: \(error)") }
  }

  /// Records whom the new configuration trusts. Where that can't be done, or it trusts what can't be used, `new` keeps
  /// what was trusted before.
  /// - Returns: what checks signatures from now on; nil where that stays as it was.
  private func recordedChecker(
    _ new: inout Configuration, _ old: Configuration, _ oldChecker: ReceiptVerifier,
    _ targets: ConfigurationTargets
  ) -> ReceiptVerifier? {
    var checker: ReceiptVerifier?
    if new.trust != old.trust {
      do {
        checker = try ReceiptVerifier(configuration: new.trust.verifierConfiguration)
      } catch {
        log(.error, "config.json: trust: \(error); the old trust settings stay in effect")
        new.trust = old.trust
      }
    }
    if new.trust == old.trust, new.appStore == old.appStore { return nil }
    do {
      try targets.recordTrust(
        TrustDeclared(new.appStore, new.trust, checker ?? oldChecker),
        TrustDeclared(old.appStore, old.trust, oldChecker))
      return checker
    } catch let error as VerifyReceiptOptionsError {
      log(.error, "config.json: app_store: \(error); the old endpoints stay in effect")
      new.appStore = old.appStore
      return recordedChecker(&new, old, oldChecker, targets)
    } catch {
      log(
        .error,
        "config.json: trust: cannot be recorded (\(error)); the old trust settings stay in effect")
      (new.trust, new.appStore) = (old.trust, old.appStore)
      return nil
    }
  }
}

/// The client of the App Store, which a new configuration replaces.
final class ReplaceableAppStore: VerifyReceiptService {
  private struct State {
    var current: VerifyReceiptClient
    /// The one before, whose last calls may still be under way.
    var retired: VerifyReceiptClient?
  }

  private let state: Monitor<State>

  init(_ configuration: Configuration.AppStore) throws(VerifyReceiptOptionsError) {
    state = Monitor(State(current: try VerifyReceiptClient(configuration.clientOptions)))
  }

  func verify(
    _ request: VerifyReceiptRequest, completion: @escaping @Sendable (VerifyReceiptResponse) -> Void
  ) {
    state.withLock { $0.current }.verify(request, completion: completion)
  }

  func replace(_ configuration: Configuration.AppStore) throws(VerifyReceiptOptionsError) {
    let client = try VerifyReceiptClient(configuration.clientOptions)
    let oldest = state.withLock { state in
      defer { (state.current, state.retired) = (client, state.current) }
      return state.retired
    }
    oldest?.shutDown()
  }

  /// Gives up every call; a call that comes later is given up at once.
  func shutDown() {
    let (current, retired) = state.withLock { ($0.current, $0.retired) }
    retired?.shutDown()
    current.shutDown()
  }
}
