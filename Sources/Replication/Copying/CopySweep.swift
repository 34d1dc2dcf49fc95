// Sweeps a copy: finds objects that no step names, and missing objects that steps name.
import Base
import Ledger

extension SweepFinding {
  /// The most keys and steps to delete that one sweep finds; the next sweep finds the rest.
  static let keyCountMax = 10_000
  static let stepCountMax = 10_000
}

extension CopyWorker {
  /// Nil if the objects could not be listed.
  func found(_ sweep: Sweep) -> SweepFinding? {
    // A caller waits for what is read back.
    let path: ReplicationMailbox.Path =
      if case .sample = sweep.reading { .content } else { .deletions }
    do throws(ObjectStoreError) {
      var finding = SweepFinding()
      try checkObjects(of: sweep, &finding)
      try checkSteps(of: sweep, &finding)
      exchange.succeeded(path)
      return finding
    } catch {
      if error.kind != .cancelled, !exchange.isStopping {
        exchange.failed(path, error.description, error.kind)
      }
      return nil
    }
  }

  // MARK: Objects

  private func checkObjects(
    of sweep: Sweep, _ finding: inout SweepFinding
  ) throws(ObjectStoreError) {
    let named = sweep.state.namedKeys
    var sizes: [String: Int] = [:]
    for prefix in CopyLayout.contentPrefixes {
      try list(prefix) { entry in
        if named.contains(entry.key) {
          sizes[entry.key] = entry.byteCount
        } else if CopyLayout.isContentKey(entry.key) {
          finding.isPartial = finding.keys.count >= SweepFinding.keyCountMax
          if !finding.isPartial { finding.keys.append(entry.key) }
        }
        return true
      }
    }
    for expected in sweep.state.expectedObjects {
      let byteCount = expected.byteCount ?? sweep.sizes[expected.key]
      guard let size = sizes[expected.key], size == byteCount ?? size else {
        finding.lost.append(expected)
        continue
      }
      // Two small objects whose size is also unknown.
      let isAlwaysRead = expected.object == .identity || expected.object == .work
      guard isAlwaysRead || sweep.reading.includes(expected.key) else { continue }
      try goOn()
      finding.readCount += 1
      finding.readByteCount += size
      if try !isRight(expected) { finding.lost.append(expected) }
    }
  }

  // MARK: Steps

  /// Finds superseded frames, and missing steps that are needed.
  private func checkSteps(
    of sweep: Sweep, _ finding: inout SweepFinding
  ) throws(ObjectStoreError) {
    let state = sweep.state
    let needed = Dictionary(
      uniqueKeysWithValues: state.frames.map { ($0.step, $0.frames) })
    let complete = state.newest.number - state.stepsSinceComplete
    let first = min(sweep.firstStep, complete, state.frames.first?.step ?? complete)
    var numbers: [Int] = []
    var sizes: [Int: Int] = [:]
    try list(CopyLayout.stepsPrefix, after: first > 0 ? CopyLayout.stepKey(first - 1) : nil) {
      entry in
      guard let number = CopyLayout.stepNumber(entry.key), number <= state.newest.number else {
        return true
      }
      if number >= complete || needed[number] != nil { sizes[number] = entry.byteCount }
      if number >= sweep.firstStep, number < state.newest.number, needed[number] == nil {
        let isFull = numbers.count >= SweepFinding.stepCountMax
        if !isFull { numbers.append(number) }
        finding.isPartial = finding.isPartial || isFull
      }
      return true
    }
    for number in numbers {
      try goOn()
      if let step = try superseded(number) { finding.steps.append(step) }
    }
    let steps = Set(complete...state.newest.number).union(needed.keys).sorted()
    finding.lostSteps += StepSequence.faults(ofMissing: steps.filter { sizes[$0] == nil })
    for number in steps {
      guard let size = sizes[number] else { continue }
      // The header precedes the frames.
      if size <= needed[number]?.byteCount ?? 0 {
        finding.lostSteps.append(
          CopyFault(object: CopyLayout.stepKey(number), cause: "a part of it is missing"))
      } else if sweep.reading.includes(CopyLayout.stepKey(number)) {
        try goOn()
        finding.readCount += 1
        finding.readByteCount += size
        if try !isRight(number, needed[number]) {
          finding.lostSteps.append(
            CopyFault(object: CopyLayout.stepKey(number), cause: "it is damaged"))
        }
      }
    }
  }

  /// Whether a step can be read and has the frames that are needed from it.
  private func isRight(_ number: Int, _ frames: CopiedFrames?) throws(ObjectStoreError) -> Bool {
    guard
      let bytes = try store.get(
        CopyLayout.stepKey(number), byteCountMax: CopyLayout.stepByteCountMax),
      let stored = Step.parse(bytes), stored.step.number == number
    else { return false }
    return frames == nil || stored.step.frames == frames && stored.frames != nil
  }

  /// A step that still holds frames; nil if it holds none.
  private func superseded(_ number: Int) throws(ObjectStoreError) -> SupersededStep? {
    guard
      let bytes = try store.get(
        CopyLayout.stepKey(number), byteCountMax: CopyLayout.stepByteCountMax),
      let stored = Step.parse(bytes), stored.frames != nil, let frames = stored.step.frames
    else { return nil }
    return SupersededStep(
      number: number, positions: frames.first..<frames.end, header: stored.step.shortHeader)
  }

  /// Lists objects until the body returns false.
  private func list(
    _ prefix: String, after start: String? = nil, _ body: (ObjectEntry) -> Bool
  ) throws(ObjectStoreError) {
    var after = start
    while true {
      try goOn()
      let entries = try store.list(prefix: prefix, after: after)
      for entry in entries where !body(entry) { return }
      guard entries.count >= CopyLayout.listCountMax, let last = entries.last else { return }
      // Without this check, a store that repeats its list would be asked forever.
      guard after.map({ ObjectKey.precedes($0, last.key) }) ?? true else { return }
      after = last.key
    }
  }
}

extension Sweep.Reading {
  func includes(_ key: String) -> Bool {
    switch self {
    case .keys(let keys): keys.contains(key)
    case .sample(let part): part >= 1 || Double.random(in: 0..<1) < part
    }
  }
}
