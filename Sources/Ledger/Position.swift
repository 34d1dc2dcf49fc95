// The type of event positions.

/// An event's ordinal in the whole ledger, contiguous from 0.
package typealias Position = Int
