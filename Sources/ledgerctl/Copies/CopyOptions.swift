// The options that name a copy, and the store behind them.
import Base
import Ledger
import ObjectStore
import Replication
import Server

extension Option {
  /// Where the copy is.
  static func copy(_ name: String, isRequired: Bool = false, help: String) -> Option {
    Option(name, value: .init("TARGET"), isRequired: isRequired, help: help)
  }

  /// What S3 needs beside the target.
  static let copyAccess = [
    Option("endpoint", value: .init("URL"), help: "of S3: the server's URL, if it is not Amazon's"),
    Option("region", value: .init("NAME"), help: "of S3: the region"),
    Option(
      "credentials-file", value: .init("FILE"),
      help: "of S3: a file with mode 0600 as replication.md describes it"),
  ]
}

extension Invocation {
  /// The copy that an option names; nil if it is not given.
  func givenCopy(_ option: String) throws -> Configuration.Replication? {
    guard let target = value(option) else {
      for name in ["endpoint", "region", "credentials-file"] where has(name) {
        throw UsageError("--\(name)", "requires --\(option)", command: command.name)
      }
      return nil
    }
    do throws(Configuration.Replication.GivenFault) {
      return try Configuration.Replication(
        given: target, option: option, endpoint: value("endpoint"), region: value("region"),
        credentialsFile: value("credentials-file"))
    } catch {
      throw Failure(operation: command.name, object: "--\(error.option)", cause: error.cause)
    }
  }

  /// The same, or else the copy of `config.json`.
  func copy(_ option: String, of directory: LedgerDirectory) throws -> Configuration.Replication {
    if let given = try givenCopy(option) { return given }
    if let configured = try ConfigurationFile(directory).read().replication { return configured }
    throw Failure(
      operation: command.name, object: "config.json",
      cause: "it names no copy (replication); give --\(option) TARGET")
  }
}

extension Context {
  private static let watchMs: Int64 = 100

  /// Calls `body` with a copy's store. A signal ends the calls under way.
  func withStore<Result>(
    _ copy: Configuration.Replication, _ body: (PatientStore) throws -> Result
  ) throws -> Result {
    let store: PatientStore
    do { store = PatientStore(try copy.store()) } catch {
      throw Failure(operation: "open store", object: copy.target, cause: error.cause)
    }
    let isDone = Monitor(false, conditionCount: 1)
    let interruption = interruption
    let watch = try WorkerThread.start {
      while !interruption.isRequested {
        let done = isDone.wait(on: 0, limitMs: Self.watchMs) { $0 ? true : nil }
        if done == true { return }
      }
      store.cancel()
    }
    defer {
      isDone.withLock { $0 = true }
      isDone.broadcast(0)
      watch.join()
    }
    do { return try body(store) } catch {
      if interruption.isRequested { throw Interrupted() }
      throw error
    }
  }
}

/// Progress that several threads report.
final class SharedProgress: Sendable {
  private nonisolated(unsafe) let progress: Progress
  private let turn = Monitor(())

  init(_ label: String, context: Context) {
    progress = Progress(label, unit: .bytes, context: context)
  }

  func update(_ done: Int, of total: Int) {
    turn.withLock { _ in progress.update(done, of: total) }
  }
  func erase() { turn.withLock { _ in progress.erase() } }
}

/// The record of a fault of a copy.
func record(of fault: CopyFault) -> Record { ["object": fault.object, "cause": fault.cause] }
