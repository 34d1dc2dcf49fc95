// All commands, in the order in which a new user needs them.

/// The commands of the program.
struct CommandTable: Sendable {
  static let standard = CommandTable(commands: [
    initCommand, appAddCommand, appListCommand, appShowCommand, appEditCommand, tokenCreateCommand,
    tokenListCommand, tokenRevokeCommand, webhookListCommand, webhookTestCommand,
    webhookReplayCommand,
    configCheckCommand, configSetSharedSecretCommand, importCommand, pricesImportCommand,
    ratesImportCommand, serveCommand, retryCommand, appStoreSyncCommand, appStoreTestCommand,
    statusCommand, replicateCommand, showCommand, historyCommand, verifyCommand, replayCommand,
    rebuildCommand,
    projectionsListCommand, snapshotCreateCommand,
    snapshotListCommand, snapshotVerifyCommand, snapshotRestoreCommand, snapshotPruneCommand,
    exportCommand, reportCommand, queryCommand, diffCommand, redactCommand, redactListCommand,
    userExportCommand, restoreCommand, promoteCommand, divergenceCommand,
    keyCreateCommand, keyListCommand, checkpointCommand, proveCommand, auditCommand,
    auditProofCommand, auditConsistencyCommand, auditReportCommand, helpCommand,
    completionsCommand, versionCommand,
  ])

  let commands: [Command]

  /// The commands that begin with these words.
  func commands(under words: [String]) -> [Command] {
    commands.filter { $0.words.starts(with: words) }
  }

  /// The command with exactly these words.
  func command(_ words: [String]) -> Command? { commands.first { $0.words == words } }
}
