// helpers for tests
