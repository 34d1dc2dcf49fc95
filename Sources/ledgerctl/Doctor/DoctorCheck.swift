// The table of what `doctor` looks for: each check's id, verdict, meaning and the command that helps.

/// What a check found. `unknown`: it could not be made.
package enum DoctorVerdict: String, Sendable {
  case ok, unknown, warning, error
}

/// A trouble that `doctor` can find. Where an alert rule of `examples/alerts.yaml` is about the same, the limits are
/// that rule's, and what is critical there is an error here.
package enum DoctorCheck: String, CaseIterable, Sendable {
  case writableByOthers = "writable_by_others"
  case readableByOthers = "readable_by_others"
  case secretExposed = "secret_exposed"
  case foreignOwner = "foreign_owner"
  case linkInLedger = "link_in_ledger"
  case diskFull = "disk_full"
  case diskSpace = "disk_space"
  case clockBehindLog = "clock_behind_log"
  case clockOffAppStore = "clock_off_app_store"
  case identityUnusable = "identity_unusable"
  case formatNewer = "format_newer"
  case mergeUnfinished = "merge_unfinished"
  case logDamaged = "log_damaged"
  case signedHeadMissing = "signed_head_missing"
  case signingKeyUnusable = "signing_key_unusable"
  case signingKeyMissing = "signing_key_missing"
  case checkpointLate = "checkpoint_late"
  case erasureKeyMissing = "erasure_key_missing"
  case projectionsMissing = "projections_missing"
  case projectionsDamaged = "projections_damaged"
  case projectionsOfOtherHistory = "projections_of_other_history"
  case projectionsOutdated = "projections_outdated"
  case projectionsBehind = "projections_behind"
  case snapshotUnusable = "snapshot_unusable"
  case configInvalid = "config_invalid"
  case configUnknownFamily = "config_unknown_family"
  case appStoreKeyUnusable = "app_store_key_unusable"
  case sharedSecretRefused = "shared_secret_refused"
  case uploadTokenMissing = "upload_token_missing"
  case serverDied = "server_died"
  case copyTakenOver = "copy_taken_over"
  case copyUnreachable = "copy_unreachable"
  case copyNotBegun = "copy_not_begun"
  case copyBehind = "copy_behind"
  case copyNotFoundWhole = "copy_not_found_whole"
  case webhookCursorMissing = "webhook_cursor_missing"
  case webhookDisabled = "webhook_disabled"
  case webhookFailing = "webhook_failing"
  case webhookBehind = "webhook_behind"
  case erasuresWait = "erasures_wait"
  case erasureFailed = "erasure_failed"
  case erasureInterrupted = "erasure_interrupted"
  case erasureUnfinished = "erasure_unfinished"
  case erasedDataBack = "erased_data_back"
  case verificationLate = "verification_late"
  case productNotDeclared = "product_not_declared"
  case bundleNotRegistered = "bundle_not_registered"
  case appsUnmerged = "apps_unmerged"
  case salesUnpriced = "sales_unpriced"
  case ratesStale = "rates_stale"
  case settlementIncomplete = "settlement_incomplete"

  /// One row of the table: the verdict if the trouble is found, what it is, and the command that helps.
  package struct Row: Sendable {
    package let verdict: DoctorVerdict
    package let meaning: String
    package let command: String

    fileprivate init(_ verdict: DoctorVerdict, _ meaning: String, _ command: String) {
      (self.verdict, self.meaning, self.command) = (verdict, meaning, command)
    }
  }

  package var row: Row {
    switch self {
    case .writableByOthers:
      Row(
        .error, "group or others may write to a file or folder of the ledger", "chmod -R go-w DIR")
    case .readableByOthers:
      Row(.warning, "group or others may enter the ledger's directory", "chmod 700 DIR")
    case .secretExposed:
      Row(.error, "group or others may read or write `config.json` or a key", "chmod 600 FILE")
    case .foreignOwner:
      Row(
        .error, "a file belongs to another user than the ledger's directory", "chown -R USER: DIR")
    case .linkInLedger:
      Row(
        .error, "a link or special file stands where a file must be",
        "cp -p --remove-destination \"$(readlink -f FILE)\" FILE")
    case .diskFull: Row(.error, "less than 64 MiB are free", "df DIR")
    case .diskSpace:
      Row(
        .warning, "a rebuild or an erasure would fill the disk", "ledgerctl snapshot prune --keep 1"
      )
    case .clockBehindLog:
      Row(
        .warning, "the newest event is more than 5 s later than the clock",
        "timedatectl set-ntp true")
    case .clockOffAppStore:
      Row(
        .warning, "the clock differs from the App Store's by more than 60 s (`--app-store` asks)",
        "timedatectl set-ntp true")
    case .identityUnusable:
      Row(.error, "`ledger.json` is missing or damaged", "ledgerctl restore --from TARGET DIR")
    case .formatNewer:
      Row(.error, "a newer version of the program wrote the ledger", "ledgerctl version")
    case .mergeUnfinished:
      Row(.error, "a merge into the ledger was interrupted", "ledgerctl merge LEDGER… -o DIR")
    case .logDamaged:
      Row(
        .error, "the log is damaged or lacks a file, as far as opening it shows", "ledgerctl audit")
    case .signedHeadMissing:
      Row(
        .error, "a signed head is ahead of the log or not of its history, or a checkpoint is lost",
        "ledgerctl audit")
    case .signingKeyUnusable:
      Row(.error, "the signing key cannot be used", "ledgerctl key create --further")
    case .signingKeyMissing:
      Row(
        .warning, "`ledger.json` names signing keys, but none is in `keys/`",
        "ledgerctl key create --further")
    case .checkpointLate:
      Row(.warning, "events have been in no signed head for 35 days", "ledgerctl checkpoint")
    case .erasureKeyMissing:
      Row(
        .warning, "the ledger has erased data, and `keys/lines.hmac` is missing or partial",
        "cp -p BACKUP/keys/lines.hmac DIR/keys/")
    case .projectionsMissing: Row(.warning, "there are no projections", "ledgerctl rebuild")
    case .projectionsDamaged: Row(.error, "the projections are damaged", "ledgerctl rebuild")
    case .projectionsOfOtherHistory:
      Row(.error, "the projections are of another history than the log", "ledgerctl audit")
    case .projectionsOutdated:
      Row(.warning, "another version of the program built the projections", "ledgerctl rebuild")
    case .projectionsBehind:
      Row(.warning, "the projections lack more than 10,000 events", "ledgerctl app list")
    case .snapshotUnusable:
      Row(
        .warning, "a snapshot is damaged or of another history", "ledgerctl snapshot prune --keep N"
      )
    case .configInvalid: Row(.error, "`config.json` cannot be used", "ledgerctl config check")
    case .configUnknownFamily:
      Row(
        .warning, "`config.json` names an app family that is not registered", "ledgerctl app list")
    case .appStoreKeyUnusable:
      Row(
        .error, "a key of the App Store Server API is missing or cannot be used",
        "ledgerctl config check")
    case .sharedSecretRefused:
      Row(
        .error, "receipts wait because the App Store refused the shared secret, or there is none",
        "ledgerctl config set-shared-secret --app ID")
    case .uploadTokenMissing:
      Row(
        .warning, "an app family has a shared secret or had tokens, but none for uploads is valid",
        "ledgerctl token create --app ID -o FILE")
    case .serverDied:
      Row(
        .warning, "a server ended without closing the ledger, and none has started since",
        "ledgerctl serve")
    case .copyTakenOver:
      Row(.error, "another writer has taken over the copy", "ledgerctl divergence -o FILE")
    case .copyUnreachable:
      Row(.error, "the directory of the copy cannot be reached", "ledgerctl config check")
    case .copyNotBegun: Row(.warning, "the copy holds nothing yet", "ledgerctl replicate")
    case .copyBehind:
      Row(.error, "an event has waited for more than 60 s for the copy", "ledgerctl replicate")
    case .copyNotFoundWhole:
      Row(.error, "the copy was not found whole for two days", "ledgerctl replicate --verify")
    case .webhookCursorMissing:
      Row(
        .error, "a webhook's state is missing or damaged, so it is stopped",
        "ledgerctl webhook replay --app ID --from POSITION")
    case .webhookDisabled:
      Row(.error, "a webhook is disabled", "ledgerctl app edit ID --webhook URL")
    case .webhookFailing:
      Row(
        .warning, "no delivery of a webhook has succeeded for an hour",
        "ledgerctl webhook test --app ID")
    case .webhookBehind:
      Row(.warning, "a webhook lacks the newest 1,000 events", "ledgerctl webhook list")
    case .erasuresWait:
      Row(.warning, "a request to erase has waited for two days", "ledgerctl redact --now")
    case .erasureFailed:
      Row(
        .warning, "a request to erase of the last 30 days has failed", "ledgerctl redact list")
    case .erasureInterrupted:
      Row(
        .warning, "an erasure was interrupted, and no server finishes it",
        "ledgerctl redact --again")
    case .erasureUnfinished:
      Row(
        .error, "the log begins an erasure whose request is not here",
        "ledgerctl redact --user … --request ID")
    case .erasedDataBack:
      Row(
        .error, "an event that an erasure lists is whole again, as after restoring a backup",
        "ledgerctl redact --again")
    case .verificationLate:
      Row(.warning, "a receipt has waited for two hours for the App Store", "ledgerctl retry")
    case .productNotDeclared:
      Row(
        .error, "a product sells but is not declared: its buyers get 402",
        "ledgerctl app edit BUNDLE --product PRODUCT=TYPE")
    case .bundleNotRegistered:
      Row(
        .warning, "receipts of a bundle id that no app has were uploaded, and refused",
        "ledgerctl app add --name NAME --bundle-id BUNDLE")
    case .appsUnmerged:
      Row(
        .warning, "two app families have one name or one App Store number: one app, twice",
        "ledgerctl app list")
    case .salesUnpriced:
      Row(.warning, "sales have no price", "ledgerctl export exceptions")
    case .ratesStale:
      Row(
        .warning, "a currency's newest rate is more than 35 days older than its newest sale",
        "ledgerctl rates import FILE")
    case .settlementIncomplete:
      Row(
        .warning,
        "a settled month lacks reports after its latest day of payment, or an import ended early",
        "ledgerctl settlement list")
    }
  }
}
