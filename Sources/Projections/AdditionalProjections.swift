// The one list of additional projections: a new one is added here.

/// Kept in every ledger's database, after the standard ones, in this order.
let additionalProjections: [any Projection] = []
