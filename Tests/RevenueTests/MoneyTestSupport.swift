// Raw bytes of a string, for the money and period tests.

func withRawBytes<Value>(_ text: String, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
  var text = text
  return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
}
