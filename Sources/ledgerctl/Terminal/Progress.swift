// The progress line on standard error; and the signals that interrupt long operations.
import Base
import Glibc
import Synchronization

/// A bar with rate and remaining time, drawn at most ten times a second and only on a terminal.
package final class Progress {
  /// What is counted.
  package enum Unit { case bytes, count(String) }

  private let label: String
  private let unit: Unit
  private let terminal: Terminal
  private let diagnostics: Diagnostics
  private let startMs = MonotonicClock.nowMs()
  private var lastDrawnMs: Int64 = 0
  private var isDrawn = false

  init(_ label: String, unit: Unit, context: Context) {
    self.label = label
    self.unit = unit
    terminal = context.errorTerminal
    diagnostics = context.diagnostics
  }

  /// Reports progress. `total` is nil if it is not known.
  func update(_ done: Int, of total: Int?) {
    guard terminal.isTerminal else { return }
    let nowMs = MonotonicClock.nowMs()
    guard nowMs - lastDrawnMs >= 100 else { return }
    lastDrawnMs = nowMs
    draw(
      Self.line(
        label: label, unit: unit, done: done, total: total, elapsedMs: nowMs - startMs,
        columns: columns))
  }

  /// Draws a line that stays until the next one; without a terminal, nothing.
  func draw(_ line: String) {
    guard terminal.isTerminal else { return }
    isDrawn = true
    diagnostics.write("\r" + truncated(line, toColumns: columns) + "\u{1B}[K")
  }

  /// The maximum width of a line: text in the last column might wrap.
  private var columns: Int { (terminal.widthColumns ?? 80) - 1 }

  /// Erases the line before other text is printed. It may be drawn again.
  func erase() {
    guard isDrawn else { return }
    isDrawn = false
    diagnostics.write("\r\u{1B}[K")
  }

  deinit { erase() }

  /// The longest bar, for a wide terminal, and the shortest that is still useful.
  private static let barColumns = 5...24

  /// The line to draw. If it is too long for the columns, the bar is shortened or left out. Binary floating point
  /// suffices here: no figure depends on it.
  package static func line(
    label: String, unit: Unit, done: Int, total: Int?, elapsedMs: Int64, columns: Int
  ) -> String {
    let seconds = Double(max(elapsedMs, 1)) / 1000
    // Bounded: converting a value that is too large to an integer would crash.
    let rate = min(Double(done) / seconds, 1e15)
    var words = "  \(text(Double(done), unit))  \(text(rate, unit))/s"
    if let total, rate > 0, done < total {
      words += "  \(duration(Double(total - done) / rate)) left"
    }
    guard let total, total > 0 else { return label + words }
    let part = min(max(Double(done) / Double(total), 0), 1)
    words = " \(Int(part * 100))%" + words
    let room = columns - widthColumns(label + " []" + words)
    guard room >= barColumns.lowerBound else { return label + words }
    let bar = min(room, barColumns.upperBound)
    let filled = Int(part * Double(bar))
    return label + " [" + String(repeating: "#", count: filled)
      + String(repeating: ".", count: bar - filled) + "]" + words
  }

  private static func text(_ value: Double, _ unit: Unit) -> String {
    switch unit {
    case .count(let name): return "\(Int(value)) \(name)"
    case .bytes:
      var (scaled, index) = (value, 0)
      let names = ["B", "KiB", "MiB", "GiB", "TiB"]
      while scaled >= 1024, index + 1 < names.count { (scaled, index) = (scaled / 1024, index + 1) }
      let tenths = Int(scaled * 10)
      return index == 0 ? "\(Int(value)) B" : "\(tenths / 10).\(tenths % 10) \(names[index])"
    }
  }

  private static func duration(_ seconds: Double) -> String {
    guard seconds < 360_000 else { return "days" }
    let whole = Int(seconds.rounded(.up))
    if whole < 60 { return "\(whole) s" }
    if whole < 3600 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3600) h \(whole / 60 % 60) min"
  }
}

// MARK: - Signals

/// Whether SIGINT, SIGTERM or SIGHUP has arrived; long operations check it. A second SIGINT or SIGTERM ends the process
/// at once.
struct Interruption: Sendable {
  private static let flag = Atomic<Bool>(false)

  /// Installs the signal handlers. Call once, before other threads exist.
  static func install() -> Interruption {
    // Initialized here, so that no signal handler has to.
    flag.store(false, ordering: .relaxed)
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in
      Interruption.flag.store(true, ordering: .relaxed)
    }
    action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
    // The parent may have blocked them, and children inherit that.
    var awaited = sigset_t()
    sigemptyset(&awaited)
    // Under nohup the program continues when the terminal closes.
    let signals = isIgnored(SIGHUP) ? [SIGINT, SIGTERM] : [SIGINT, SIGTERM, SIGHUP]
    for signal in signals {
      // When a terminal closes, both its shell and the kernel send SIGHUP.
      if signal == SIGHUP { action.sa_flags = 0 }
      sigaction(signal, &action, nil)
      sigaddset(&awaited, signal)
    }
    sigprocmask(SIG_UNBLOCK, &awaited, nil)
    // A closed pipe or a file size limit should be an error of write, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    return Interruption()
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var found = sigaction()
    guard sigaction(signal, nil, &found) == 0 else { return false }
    return unsafeBitCast(found.__sigaction_handler.sa_handler, to: Int.self)
      == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  var isRequested: Bool { Self.flag.load(ordering: .relaxed) }

  /// Throws `Interrupted` if a signal asked the command to stop.
  func check() throws { if isRequested { throw Interrupted() } }
}
