// Holds the place of the object store's tests.
