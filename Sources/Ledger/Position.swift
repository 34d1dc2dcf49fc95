// The one type that names an event's place.

/// An event's ordinal in the whole ledger, contiguous from 0.
package typealias Position = Int
