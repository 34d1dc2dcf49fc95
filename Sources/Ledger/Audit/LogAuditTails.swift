// The audit of the tails, after all blocks.

extension LogAudit {
  /// Audits the tails, the first of which begins where the blocks end; intact events go to `salvage`.
  func auditTails(_ tails: AuditTails, _ salvage: Salvage) throws {
    if let torn = tornMember {
      if tails.open.contains(where: { $0.first == position }) {
        report.note(
          "\(torn.file) ends with a truncated block whose events are in a tail; the next "
            + "writer removes the block")
      } else if isBeingWritten() {
        report.note("\(torn.file) grew while it was read")
      } else {
        find(
          .missing, torn.file, block: torn.block, at: position,
          "its last member is damaged and no tail holds its events")
      }
    }
    for finding in tails.findings { report.add(finding) }
    let blocksEnd = position
    for (index, tail) in tails.open.enumerated() {
      report.tailCount += 1
      if tail.first < blocksEnd {
        auditCovered(tail, blocksEnd)
        continue
      }
      if tail.first > position {
        find(
          .missing, directory.logPath(Format.tailName(position)), at: position, to: tail.first,
          "no tail begins where the log ends")
        tree = nil
        isCertain = false
        position = tail.first
      }
      let content: ByteBuffer
      do throws(LedgerError) { content = try tail.content() } catch {
        if error.isOfVanishedTail { throw hasVanished(tail) }
        report.add(AuditFinding(error, file: tail.file.name, at: position))
        isCertain = false
        continue
      }
      try auditTail(tail, content, isNewest: index == tails.open.count - 1, salvage)
    }
  }

  /// Whether what looks like a torn member was a writer at work: then its tail came into being, and
  /// went, after the tails were opened, and the log is whole by now.
  private func isBeingWritten() -> Bool {
    guard let reader = try? LogReader(directory) else { return false }
    return reader.damage == nil && reader.head.size > position
  }

  /// A log is not damaged because its tails are sealed while the limit of open files is too low to keep them open.
  private func hasVanished(_ tail: AuditTails.Tail) -> LedgerError {
    LedgerError(
      .inputOutput, operation: "audit", object: tail.file.name,
      cause: "it was sealed during the audit, and the limit of open files is too low to keep it "
        + "open; raise the limit, or try again")
  }

  private func auditCovered(_ tail: AuditTails.Tail, _ blocksEnd: Position) {
    let end: Position
    do throws(LedgerError) {
      end = try TailView.coveredEnd(try tail.file.opened(), first: tail.first, ByteBuffer())
    } catch {
      if error.isOfVanishedTail { return }
      return report.add(AuditFinding(error, file: tail.file.name, at: tail.first))
    }
    if end > blocksEnd, isCertain {
      find(
        .tampered, tail.file.name, at: blocksEnd,
        "it holds events beyond the block that covers it")
    } else if report.findings.contains(where: { $0.touches(tail.first..<max(end, tail.first + 1)) })
    {
      report.note(
        "\(tail.file.name) was sealed, but the log is damaged there: keep this file; the next "
          + "writer compares the two")
    } else {
      report.note("\(tail.file.name) is sealed already")
    }
  }

  private func auditTail(
    _ tail: AuditTails.Tail, _ content: ByteBuffer, isNewest: Bool, _ salvage: Salvage
  ) throws {
    let name = tail.file.name
    report.byteCount += content.count
    var offset = 0
    while offset < content.count {
      let rest = UnsafeRawBufferPointer(rebasing: content.bytes[offset...])
      if let header = FrameHeader(rest), header.isWhole(in: rest) {
        let events = UnsafeRawBufferPointer(
          rebasing: rest[header.headerByteCount..<header.frameByteCount])
        if let lines = take(header, events, name) { try salvage(lines, events) }
        offset += header.frameByteCount
        continue
      }
      let search = AuditTails.nextFrame(rest)
      guard let next = search.frame else {
        if !search.isTorn {
          find(.corrupt, name, at: position, "what stands here is no frame, nor one cut short")
        } else if isNewest {
          report.note(
            "\(name) ends with \(rest.count) bytes of a write that was cut short; the next "
              + "writer removes them")
        } else {
          find(.corrupt, name, at: position, "a frame is damaged and a newer tail follows")
        }
        return
      }
      find(.corrupt, name, at: position, to: next.first, "a frame is damaged")
      tree = nil
      isCertain = false
      position = next.first
      offset += next.offsetBytes
    }
  }

  /// Returns the lines where they are whole.
  private func take(
    _ header: FrameHeader, _ events: UnsafeRawBufferPointer, _ name: String
  ) -> AuditedLines? {
    if header.first != position {
      let isGap = header.first > position
      find(
        isGap ? .missing : .tampered, name, at: position, to: isGap ? header.first : nil,
        "a frame of position \(header.first) is here")
      tree = nil
      position = header.first
      isCertain = false
    }
    let lines = AuditedLines(
      events, firstPosition: header.first, count: header.eventCount)
    for fault in lines.faults { find(.tampered, name, at: fault.position, fault.cause) }
    if let breach = lines.breach {
      find(.tampered, name, at: breach.position, to: header.endPosition, breach.cause)
      tree = nil
      isCertain = false
    } else {
      if isCertain, lines.firstEventAtMs < lastEventAtMs {
        find(
          .tampered, name, at: header.first,
          "the event's time is earlier than the previous event's")
      }
      report.eventCount += header.eventCount
      extend(by: lines)
    }
    position = header.endPosition
    return lines.breach == nil ? lines : nil
  }
}
