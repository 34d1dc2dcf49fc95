// What a process uses, under the names of Prometheus's client libraries, from /proc.
import Base
import Glibc
import Ledger

/// Figures of this process. What the system does not tell is left out.
package enum ProcessMetric: String, CaseIterable, Sendable {
  case residentBytes = "process_resident_memory_bytes"
  case cpuSeconds = "process_cpu_seconds_total"
  case startSeconds = "process_start_time_seconds"
  case openFiles = "process_open_fds"
  case openFilesMax = "process_max_fds"

  var type: String { self == .cpuSeconds ? "counter" : "gauge" }

  var help: String {
    switch self {
    case .residentBytes: "Resident memory in bytes."
    case .cpuSeconds: "Processor time of user and system, in seconds."
    case .startSeconds: "When the process started, in epoch seconds."
    case .openFiles: "Open file descriptors."
    case .openFilesMax: "The limit of open file descriptors."
    }
  }

  package static func current() -> [(metric: ProcessMetric, value: Double)] {
    var values: [(ProcessMetric, Double)] = []
    if let text = try? SmallFile.read("/proc/self/stat", byteCountMax: 4096),
      let stat = ProcessStatus(text)
    {
      let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
      values += [
        (.residentBytes, Double(stat.residentPages * sysconf(Int32(_SC_PAGESIZE)))),
        (.cpuSeconds, Double(stat.cpuTicks) / ticks),
        (.startSeconds, bootSeconds + Double(stat.startTicks) / ticks),
      ]
    }
    if let count = openFileCount() { values.append((.openFiles, Double(count))) }
    return values + [(.openFilesMax, Double(OpenFileLimit.current))]
  }

  /// When the system started. /proc/stat says it too, but not to a service with `ProcSubset=pid`. Computed once: a
  /// start that moves with the clock would look like a new process.
  private static let bootSeconds: Double = {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    let bootMs = Timestamp.now() - (Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    return Double(bootMs) / 1000
  }()

  private static func openFileCount() -> Int? {
    guard let folder = opendir("/proc/self/fd") else { return nil }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    // Without "." and "..", and without the folder itself.
    return count - 3
  }
}

/// What /proc/PID/stat says of a process.
package struct ProcessStatus: Equatable {
  package let cpuTicks: Int
  package let startTicks: Int
  package let residentPages: Int

  /// Nil if it is not what proc(5) describes.
  package init?(_ text: [UInt8]) {
    // The program's name, in parentheses, may contain anything.
    guard let nameEnd = text.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    let fields = String(decoding: text[(nameEnd + 1)...], as: UTF8.self)
      .split { $0 == " " || $0 == "\n" }
    // The first field after the name is proc(5)'s third.
    func number(_ field: Int) -> Int? { fields.count > field - 3 ? Int(fields[field - 3]) : nil }
    guard let user = number(14), let system = number(15), let start = number(22),
      let resident = number(24)
    else { return nil }
    (cpuTicks, startTicks, residentPages) = (user + system, start, resident)
  }
}
