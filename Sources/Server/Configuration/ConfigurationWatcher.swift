// The configuration of a running server: read again when its file changes.
import Base
import Glibc
package import Ledger
import Synchronization

/// Keeps the configuration of a ledger current. A file that turns bad is reported once, and what was good
/// before stays in effect.
package final class ConfigurationWatcher: Sendable {
  private struct State {
    var configuration: Configuration
    var paths: [String]
    var stamps: [FileStatus?]
    /// Read so soon after its last change that another might not show in the stamp.
    var isFresh: Bool
    /// What was reported last; nil while all is well.
    var reported: ConfigurationError?
    /// Whether there was a file when the configuration in effect was read.
    var hadFile: Bool
  }

  private let file: ConfigurationFile
  private let state: Monitor<State>
  private let onChange: @Sendable (Configuration) -> Void
  private let onProblem: @Sendable (ConfigurationError) -> Void
  private let onRecovery: @Sendable () -> Void
  private let isStopping = Atomic<Bool>(false)
  /// Held while looking, so that changes are reported one after the other.
  private let looking = Monitor(())
  private let thread = Monitor<WorkerThread?>(nil)

  /// Reads the configuration and begins to watch it, once a second. Throws where it is bad from the start.
  /// - Parameters:
  ///   - onChange: told of each new configuration, on the watching thread or that of `check()`.
  ///   - onProblem: told once of each fault that keeps a changed file from taking effect.
  ///   - onRecovery: called when such a problem is gone, before the change that came with it.
  package init(
    _ directory: LedgerDirectory,
    onChange: @escaping @Sendable (Configuration) -> Void = { _ in },
    onProblem: @escaping @Sendable (ConfigurationError) -> Void = { _ in },
    onRecovery: @escaping @Sendable () -> Void = {}
  ) throws {
    file = ConfigurationFile(directory)
    let loaded = try file.load()
    state = Monitor(
      State(
        configuration: loaded.configuration, paths: loaded.filePaths, stamps: loaded.stamps,
        isFresh: true, hadFile: loaded.stamps.first != .some(nil)))
    self.onChange = onChange
    self.onProblem = onProblem
    self.onRecovery = onRecovery
    // The thread must not keep the watcher alive, or nobody would ever end it.
    let started = try WorkerThread.start { [weak self] in
      while let watcher = self, !watcher.isStopping.load(ordering: .acquiring) {
        watcher.check()
        Self.pause(watcher)
      }
    }
    thread.withLock { $0 = started }
  }

  deinit { stop() }

  /// The configuration in effect.
  package var current: Configuration { state.withLock { $0.configuration } }

  /// Stops watching; `current` keeps its value. Calling it again does nothing.
  package func stop() {
    isStopping.store(true, ordering: .releasing)
    thread.withLock { $0.take() }?.join()
  }

  private static func pause(_ watcher: ConfigurationWatcher) {
    for _ in 0..<10 where !watcher.isStopping.load(ordering: .acquiring) { usleep(100_000) }
  }

  /// Checks the file now, and applies its changes.
  package func check() {
    looking.withLock { _ in
      let (paths, stamps, isFresh) = state.withLock { ($0.paths, $0.stamps, $0.isFresh) }
      if !isFresh, paths.map(file.stamp) == stamps { return }
      readAgain()
    }
  }

  private func readAgain() {
    do throws(ConfigurationError) {
      let loaded = try file.load()
      // Some editors take the file away for a moment, and no token may lose its effect by that.
      let hadFile = state.withLock { $0.hadFile }
      if hadFile, loaded.stamps.first == .some(nil) {
        throw ConfigurationError("read", file.path, [.init("", "it was removed")])
      }
      let (isNew, hasRecovered) = state.withLock { state in
        defer {
          state.configuration = loaded.configuration
          state.paths = loaded.filePaths
          state.stamps = loaded.stamps
          state.isFresh = Self.isFresh(loaded.stamps)
          state.reported = nil
          state.hadFile = loaded.stamps.first != .some(nil)
        }
        return (state.configuration != loaded.configuration, state.reported != nil)
      }
      if hasRecovered { onRecovery() }
      if isNew { onChange(loaded.configuration) }
    } catch {
      let isNew = state.withLock { state in
        defer {
          // A file that it names may be repaired without a change of config.json itself.
          state.isFresh = true
          state.reported = error
        }
        return state.reported != error
      }
      if isNew { onProblem(error) }
    }
  }

  private static func isFresh(_ stamps: [FileStatus?]) -> Bool {
    let nowSeconds = Timestamp.now() / 1000
    return stamps.contains { stamp in
      stamp.map { nowSeconds - max($0.modifiedAtNs, $0.changedAtNs) / 1_000_000_000 < 2 } ?? false
    }
  }
}
