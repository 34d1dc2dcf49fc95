// Checks of `doctor` on what a server uses: config.json, tokens, the copy, webhooks, erasures.
import Base
import Erasure
import Ledger
import Projections
import Replication
import Server

extension Examination {
  private static let webhookFailingMs: Int64 = 3_600_000
  /// For how long a failed request is a trouble.
  private static let failedMs = 30 * dayMs

  // MARK: config.json

  func examineConfiguration() {
    attempt(.configInvalid, .appStoreKeyUnusable, because: Self.accessChecks) {
      let directory = try ledger()
      do throws(ConfigurationError) {
        readConfiguration = try ConfigurationFile(directory).read()
      } catch {
        // What others may read is refused, too.
        if Self.accessChecks.contains(where: has) { throw error }
        for problem in error.problems {
          report(
            problem.path.hasSuffix("private_key_file") ? .appStoreKeyUnusable : .configInvalid,
            problem.path.isEmpty ? "config.json" : problem.path, problem.cause)
        }
      }
    }
    attempt(.uploadTokenMissing) {
      let configuration = try configuration()
      let tokens = configuration.tokens.filter { $0.scope == .upload }
      let valid = Set(tokens.filter { $0.revokedAtMs == nil }.map(\.appFamilyID))
      let families = Set(tokens.map(\.appFamilyID)).union(configuration.sharedSecrets.keys)
      for family in families.subtracting(valid).sorted() where standby == nil {
        report(
          .uploadTokenMissing, "app \(family)", "no back end of the app can upload",
          command: "ledgerctl token create --app \(family) -o FILE")
      }
    }
  }

  // MARK: Copy

  func examineCopy() {
    attempt(.copyTakenOver) {
      _ = try ledger()
      if let standby, standby.reason == .fenced {
        report(
          .copyTakenOver, Standby.fileName,
          "with step \(standby.step), epoch \(standby.epoch); nothing may be appended here")
      }
    }
    attempt(.copyUnreachable, .copyNotBegun, .copyBehind, .copyNotFoundWhole) {
      let (configuration, reader) = (try configuration(), try wholeLog())
      guard standby == nil, let copy = configuration.replication,
        let standing = try CopyStanding(reader.directory, reader)
      else { return }
      if let cause = unreachableCopy(copy) {
        return report(.copyUnreachable, copy.target, cause)
      }
      guard let recorded = standing.recorded, recorded.step != nil else {
        if standing.size > 0 {
          report(
            .copyNotBegun, copy.target, "nothing is confirmed; a server or an import begins it")
        }
        return
      }
      let lagMs = standing.lagMs(nowMs)
      if lagMs > DoctorLimits.copyLagSeconds * 1000 {
        report(
          .copyBehind, copy.target,
          "it lacks \(counted(standing.size - recorded.size, "event")), the oldest for "
            + DoctorSurroundings.age(lagMs))
      }
      let wholeMs = nowMs - (recorded.wholeAtMs ?? nowMs)
      if wholeMs > DoctorLimits.copyNotWholeDays * dayMs {
        report(
          .copyNotFoundWhole, copy.target,
          "the last time was \(DoctorSurroundings.age(wholeMs)) ago")
      }
    }
  }

  // MARK: Webhooks

  func examineWebhooks() {
    attempt(.webhookCursorMissing, .webhookDisabled, .webhookFailing, .webhookBehind) {
      let (configuration, reader) = (try configuration(), try log())
      if standby != nil { return }
      let files = WebhookFiles(reader.directory)
      for (family, app) in configuration.apps.sorted(by: { $0.key < $1.key }) {
        guard let webhook = app.webhook else { continue }
        // A server that runs, or the next one, begins where an operator asked.
        let request = try files.request(of: family)
        if case .begin? = request { continue }
        do throws(LedgerError) {
          guard let state = try files.state(of: family) else {
            report(
              .webhookCursorMissing, "app \(family)",
              "webhooks/\(family).json does not exist", command: replay(family))
            continue
          }
          examine(state, webhook, family, isEnabling: request == .enable, reader.head.size)
        } catch {
          guard error.kind == .invalidInput else { throw error }
          report(.webhookCursorMissing, "app \(family)", error.cause, command: replay(family))
        }
      }
    }
  }

  private func replay(_ family: String) -> String {
    "ledgerctl webhook replay --app \(family) --from POSITION"
  }

  private func examine(
    _ state: WebhookState, _ webhook: Configuration.Webhook, _ family: String, isEnabling: Bool,
    _ size: Position
  ) {
    let object = "app \(family)"
    if let disabled = state.disabled, disabled.webhookSHA256Hex == webhook.sha256Hex, !isEnabling {
      return report(
        .webhookDisabled, object, "since \(timeText(disabled.atMs)): \(disabled.cause.rawValue)",
        command: "ledgerctl app edit \(family) --webhook URL")
    }
    if let sinceMs = state.failingSinceMs, nowMs - sinceMs > Self.webhookFailingMs {
      return report(
        .webhookFailing, object,
        "since \(timeText(sinceMs)): \(state.lastFailure ?? "the cause is not recorded")",
        command: "ledgerctl webhook test --app \(family)")
    }
    let behind = size - state.cursor.position
    if behind > DoctorLimits.webhookEventCount {
      report(.webhookBehind, object, "it lacks the newest \(counted(behind, "event"))")
    }
  }

  // MARK: Erasures

  /// Before the projections, which must be made with the redacted lines.
  func examineInterruptedErasure() {
    attempt(.erasureInterrupted, because: Self.accessChecks + [.serverDied]) {
      let directory = try ledger()
      // A server carries one out or finishes it.
      if isServed != true, try RedactionFile.exists(in: directory) {
        report(
          .erasureInterrupted, RedactionFile.name, "its lines are not in their segments yet")
      }
    }
  }

  func examineErasures() {
    attempt(.erasuresWait, .erasureFailed, because: Self.accessChecks) {
      if standby != nil { return }
      let records = try ErasureQueue(ledger()).records()
      for record in records {
        let ageMs = nowMs - record.requestedAtMs
        switch record.state {
        case .waiting, .running:
          if ageMs > DoctorLimits.erasureWaitDays * dayMs {
            report(
              .erasuresWait, "request \(record.id)", "for \(DoctorSurroundings.age(ageMs))")
          }
        case .failed:
          if ageMs < Self.failedMs {
            report(
              .erasureFailed, "request \(record.id)",
              record.failure ?? "the cause is not recorded")
          }
        case .done: break
        }
      }
    }
    attempt(.erasureUnfinished, because: Self.accessChecks) {
      // Without projections it would read the whole log.
      guard try database() != nil else { return }
      let reader = try wholeLog()
      let unfinished = try UnfinishedErasures(
        projector(reader).unfinishedErasures(), reader.directory)
      for erasure in unfinished.lost {
        report(
          .erasureUnfinished, "erasure at \(erasure.position)",
          "its request \(erasure.request) is not in this ledger",
          command:
            "ledgerctl redact --\(erasure.scope.rawValue) … --request \(erasure.request)")
      }
    }
    attempt(.erasedDataBack, because: Self.accessChecks) {
      guard let database = try database() else { return }
      let reader = try wholeLog()
      for listing in try ErasureQueries(database).newestListings(limit: Self.listingCountMax) {
        guard let position = try wholeLine(listing, reader) else { continue }
        return report(
          .erasedDataBack, "position \(position)", "the event at \(listing) lists it as redacted")
      }
    }
  }

  /// How many lists of redacted lines are compared with the log; `audit --redactions` compares all.
  private static let listingCountMax = 20

  /// The position of the first line, of the first and the last that an event lists, that is not redacted.
  private func wholeLine(_ listing: Position, _ reader: LogReader) throws -> Position? {
    let lines = try reader.event(at: listing).withUnsafeBytes { bytes -> [DataRedacted.Line] in
      guard let event = EventLine(bytes),
        case .listing(let listing)? = try? DataRedacted(data: event.data)
      else { return [] }
      return listing.lines
    }
    for line in [lines.first, lines.last].compactMap({ $0 }) {
      let isRedacted = try reader.event(at: line.position).withUnsafeBytes {
        EventLine($0)?.isRedacted
      }
      if isRedacted == false { return line.position }
    }
    return nil
  }
}
