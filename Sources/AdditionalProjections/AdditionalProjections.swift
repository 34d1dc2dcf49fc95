// The one list of additional projections: a new one is added here. They are a module of their own, so that a change of
// one compiles neither the standard projections nor the server again.
package import Projections

/// Kept in every ledger's database, after the standard ones, in this order.
package let additionalProjections: [any Projection] = []
