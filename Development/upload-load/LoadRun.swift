// The run: who sends when, in one thread over epoll.
import CEpoll
import Glibc
import ProgramSupport
import Synchronization

/// Raised by SIGINT and SIGTERM: the run ends and reports what it has.
let isInterrupted = Atomic(false)

struct LoadPlan {
  enum Pace {
    /// So many uploads, `ratePerSecond` a second, whether the answers come or not.
    case open(ratePerSecond: Int, count: Int)
    /// Always so many under way, for so long or until so many were sent.
    case closed(durationNs: UInt64, count: Int)
  }

  var pace: Pace
  var connectionCount: Int
  /// Goes on when connections break, and for a while when none can be made.
  var reconnects = false
  /// How long answers are waited for after the last upload was sent.
  var drainNs: UInt64 = 10_000_000_000
}

/// What came of a run.
struct LoadResult {
  var planned = 0
  var sent = 0
  /// By HTTP status, 0 to 999.
  var answered = [UInt64](repeating: 0, count: 1_000)
  /// Sent, and no whole answer came: whether they were taken is unknown.
  var unanswered = 0
  /// Sent more than 2 ms after their time: no connection was free, or this program did not run.
  var sentLate = 0
  var connectionsMade = 0
  var connectionsFailed = 0
  var latency = Histogram()
  var durationNs: UInt64 = 0
  /// What this program itself took.
  var processorMs: UInt64 = 0

  var answeredCount: UInt64 { answered.reduce(0, +) }
}

final class LoadRun {
  private let plan: LoadPlan
  private let requests: RequestSet
  private let target: Target
  private let connections: UnsafeMutableBufferPointer<Connection>
  /// Idle connections, the last used on top.
  private let idle: UnsafeMutableBufferPointer<Int>
  private var idleCount = 0
  private var closedCount: Int
  private var busyCount = 0
  private let poll: Int32
  private let ready: UnsafeMutableBufferPointer<cepoll_ready>
  private var result = LoadResult()
  private var next = 0
  private var startNs: UInt64 = 0
  private var answers: ResponseFile?
  private static let retryNs: UInt64 = 50_000_000
  /// When the last connection was made, or the run began.
  private var lastConnectedNs: UInt64 = 0
  /// A run that reconnects gives up when it could not connect for so long.
  private static let patienceNs: UInt64 = 300_000_000_000

  init(plan: LoadPlan, requests: RequestSet, target: Target, answers: ResponseFile?)
    throws(ProgramError)
  {
    self.plan = plan
    self.requests = requests
    self.target = target
    self.answers = answers
    poll = cepoll_create()
    connections = .allocate(capacity: plan.connectionCount)
    idle = .allocate(capacity: plan.connectionCount)
    ready = .allocate(capacity: 256)
    for index in connections.indices { connections.initializeElement(at: index, to: Connection()) }
    idle.initialize(repeating: 0)
    ready.initialize(repeating: cepoll_ready())
    closedCount = plan.connectionCount
    guard poll >= 0 else { throw ProgramError("make", "an epoll", code: errno) }
  }

  deinit {
    for connection in connections { connection.deallocate() }
    connections.deallocate()
    idle.deallocate()
    ready.deallocate()
    if poll >= 0 { close(poll) }
  }

  private static func nowNs(_ clock: clockid_t = CLOCK_MONOTONIC) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  private var count: Int {
    switch plan.pace {
    case .open(_, let count), .closed(_, let count): count
    }
  }

  /// When an upload is to be sent; the closed loop sends as soon as it can.
  private func dueNs(_ number: Int, nowNs: UInt64) -> UInt64 {
    guard case .open(let rate, _) = plan.pace else { return nowNs }
    let (seconds, rest) = number.quotientAndRemainder(dividingBy: rate)
    return startNs + UInt64(seconds) * 1_000_000_000
      + UInt64(rest) * 1_000_000_000 / UInt64(rate)
  }

  func run() throws -> LoadResult {
    lastConnectedNs = Self.nowNs()
    try connectClosed(nowNs: lastConnectedNs)
    // Connecting is not measured: it starts once every connection stands, or none will.
    let connectEndNs = Self.nowNs() + 2_000_000_000
    while idleCount < connections.count, Self.nowNs() < connectEndNs, !isStopped {
      try waitForEvents(timeoutNs: 20_000_000)
      try connectClosed(nowNs: Self.nowNs())
    }
    startNs = Self.nowNs()
    var lastSentNs = startNs
    while true {
      let nowNs = Self.nowNs()
      try connectClosed(nowNs: nowNs)
      let isSending = next < count && !isStopped && !isOver(nowNs)
      if isSending {
        try sendDue(nowNs: nowNs)
        lastSentNs = nowNs
      } else if busyCount == 0 || nowNs > lastSentNs + plan.drainNs {
        break
      }
      try waitForEvents(timeoutNs: timeoutNs(isSending: isSending))
    }
    result.durationNs = Self.nowNs() - startNs
    result.processorMs = Self.nowNs(CLOCK_PROCESS_CPUTIME_ID) / 1_000_000
    result.unanswered += busyCount
    if case .open(_, let count) = plan.pace {
      result.planned = count
    } else {
      result.planned = next
    }
    return result
  }

  private var isStopped: Bool { isInterrupted.load(ordering: .relaxed) }

  private func isOver(_ nowNs: UInt64) -> Bool {
    guard case .closed(let durationNs, _) = plan.pace else { return false }
    return nowNs - startNs >= durationNs
  }

  private func timeoutNs(isSending: Bool) -> Int64 {
    let longest: UInt64 = 50_000_000
    guard isSending, next < count, idleCount > 0 else { return Int64(longest) }
    let nowNs = Self.nowNs()
    let due = dueNs(next, nowNs: nowNs)
    return due <= nowNs ? 0 : Int64(min(due - nowNs, longest))
  }

  // MARK: Sending

  private func sendDue(nowNs: UInt64) throws {
    while next < count, idleCount > 0 {
      let due = dueNs(next, nowNs: nowNs)
      if due > nowNs { return }
      idleCount -= 1
      let index = idle[idleCount]
      connections[index].begin(next, intendedNs: due)
      busyCount += 1
      if nowNs - due > 2_000_000 { result.sentLate += 1 }
      next += 1
      result.sent += 1
      try send(index)
    }
  }

  private func send(_ index: Int) throws {
    switch connections[index].send(requests.entry(connections[index].number)) {
    case .answered:
      watch(index, cepoll_readable)
    case .waiting: watch(index, cepoll_readable | cepoll_writable)
    case .broken(let cause): try breakConnection(index, cause)
    }
  }

  private var watched: [UInt32] = []

  /// Tells epoll only where something changes: that is, hardly ever.
  private func watch(_ index: Int, _ events: UInt32) {
    if watched.isEmpty { watched = [UInt32](repeating: 0, count: connections.count) }
    if watched[index] == events { return }
    watched[index] = events
    _ = cepoll_change(poll, connections[index].descriptor, events, UInt32(index))
  }

  // MARK: Events

  private func waitForEvents(timeoutNs: Int64) throws {
    let count = Int(cepoll_wait(poll, ready.baseAddress, Int32(ready.count), timeoutNs))
    if count < 0 {
      if errno == EINTR { return }
      throw ProgramError("wait for", "connections", code: errno)
    }
    for place in 0..<count {
      let index = Int(ready[place].tag)
      let events = ready[place].events
      switch connections[index].state {
      case .closed: continue
      case .connecting: try finishConnecting(index)
      case .idle, .busy:
        if events & cepoll_writable != 0, connections[index].state == .busy { try send(index) }
        if events & (cepoll_readable | cepoll_broken) != 0, connections[index].state != .closed {
          try receive(index)
        }
      }
    }
  }

  private func receive(_ index: Int) throws {
    switch connections[index].receive() {
    case .waiting: return
    case .broken(let cause): try breakConnection(index, cause)
    case .answered:
      let nowNs = Self.nowNs()
      result.latency.record(us: (nowNs - connections[index].intendedNs) / 1_000)
      let status = connections[index].status
      result.answered[(0..<1_000).contains(status) ? status : 0] += 1
      try answers?.add(
        connections[index].number, status: status, id: connections[index].receiptID())
      busyCount -= 1
      if connections[index].closesAfter {
        disconnect(index, retryAtNs: nowNs)
      } else {
        rest(index)
      }
    }
  }

  private func rest(_ index: Int) {
    connections[index].state = .idle
    idle[idleCount] = index
    idleCount += 1
  }

  // MARK: Connections

  private func connectClosed(nowNs: UInt64) throws {
    if closedCount == 0 { return }
    for index in connections.indices
    where connections[index].state == .closed && connections[index].retryAtNs <= nowNs {
      try connect(index, nowNs: nowNs)
    }
  }

  private func connect(_ index: Int, nowNs: UInt64) throws {
    let descriptor = socket(
      AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw ProgramError("make", "a socket", code: errno) }
    var yes: Int32 = 1
    setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    var address = target.socketAddress
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    let code = errno
    connections[index].descriptor = descriptor
    connections[index].state = .connecting
    closedCount -= 1
    guard status == 0 || code == EINPROGRESS else { return try failToConnect(index, code) }
    if watched.isEmpty { watched = [UInt32](repeating: 0, count: connections.count) }
    watched[index] = cepoll_writable
    guard cepoll_add(poll, descriptor, cepoll_writable, UInt32(index)) == 0 else {
      throw ProgramError("watch", "a connection", code: errno)
    }
  }

  private func finishConnecting(_ index: Int) throws {
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(connections[index].descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
    if code != 0 { return try failToConnect(index, code) }
    result.connectionsMade += 1
    lastConnectedNs = Self.nowNs()
    watch(index, cepoll_readable)
    rest(index)
  }

  private func failToConnect(_ index: Int, _ code: Int32) throws {
    result.connectionsFailed += 1
    let nowNs = Self.nowNs()
    disconnect(index, retryAtNs: nowNs + Self.retryNs)
    let isHopeless =
      closedCount == connections.count && nowNs - lastConnectedNs > Self.patienceNs
    guard plan.reconnects, !isHopeless else {
      throw ProgramError("connect to", "\(target.host):\(target.port)", code: code)
    }
  }

  /// A connection that ended: an idle one may, one under way leaves its upload unanswered.
  private func breakConnection(_ index: Int, _ cause: BreakCause) throws {
    let wasBusy = connections[index].state == .busy
    if wasBusy {
      busyCount -= 1
      result.unanswered += 1
    } else if let place = idle[..<idleCount].firstIndex(of: index) {
      idleCount -= 1
      for later in place..<idleCount { idle[later] = idle[later + 1] }
    }
    disconnect(index, retryAtNs: wasBusy ? Self.nowNs() + Self.retryNs : 0)
    guard plan.reconnects || !wasBusy else {
      let object = "\(target.host):\(target.port)"
      switch cause {
      case .closed:
        throw ProgramError("upload to", object, "the connection ended without an answer")
      case .failed(let code): throw ProgramError("upload to", object, code: code)
      case .unreadable:
        throw ProgramError("upload to", object, "what the server sent is no readable answer")
      }
    }
  }

  private func disconnect(_ index: Int, retryAtNs: UInt64) {
    close(connections[index].descriptor)
    connections[index].descriptor = -1
    connections[index].state = .closed
    connections[index].retryAtNs = retryAtNs
    closedCount += 1
  }
}
