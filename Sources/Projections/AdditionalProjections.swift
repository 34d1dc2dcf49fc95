// The one list of the projections that are kept beside the standard ones: a new one is added here.

/// Kept in every ledger's database, after the standard ones, in this order.
let additionalProjections: [any Projection] = []
