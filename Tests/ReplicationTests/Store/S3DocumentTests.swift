// The XML of S3's responses: what is read, and what hostile documents do.
import Base
import Replication
import TestSupport
import Testing

@Suite("XML of S3's responses") struct S3DocumentTests {
  static func list(_ content: String) -> [UInt8] {
    Array("<ListBucketResult>\(content)</ListBucketResult>".utf8)
  }

  static let whole = """
    \u{FEFF}<?xml version="1.0" encoding="UTF-8"?>
    <!-- a store's -->
    <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix/>
      <KeyCount>2</KeyCount><IsTruncated>true</IsTruncated>
      <Contents a='"&gt;' ><Key>a&amp;&lt;&gt;&quot;&apos;&#65;&#x42;&#x1F600;</Key><Size>12</Size>
        <ETag>&#34;x&#34;</ETag><Owner><ID>1</ID><DisplayName>n</DisplayName></Owner></Contents>
      <Contents><Size>0</Size><Key>b</Key></Contents>
      <CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>
    </ListBucketResult >

    """

  @Test("a list is read, its entities decoded, the rest skipped")
  func wholeList() throws {
    let page = try #require(try S3ListDocument(Array(Self.whole.utf8)))
    #expect(page.isTruncated)
    expectEqual(
      page.entries,
      [
        ObjectEntry(key: "a&<>\"'AB\u{1F600}", byteCount: 12), ObjectEntry(key: "b", byteCount: 0),
      ])
  }

  @Test("a document with another root element is not a list")
  func otherDocument() throws {
    #expect(try S3ListDocument(Array("<Error><Code>SlowDown</Code></Error>".utf8)) == nil)
  }

  @Test(
    "a list that differs from S3's form is refused",
    arguments: [
      "", "<IsTruncated>yes</IsTruncated>",
      "<IsTruncated>true</IsTruncated><IsTruncated>false</IsTruncated>",
      "<IsTruncated>false</IsTruncated>text",
      "<IsTruncated>false</IsTruncated><Contents><Key>a</Key></Contents>",
      "<IsTruncated>false</IsTruncated><Contents><Size>1</Size></Contents>",
      "<IsTruncated>false</IsTruncated><Contents><Key></Key><Size>1</Size></Contents>",
      "<IsTruncated>false</IsTruncated><Contents><Key>a</Key><Size>-1</Size></Contents>",
      "<IsTruncated>false</IsTruncated><Contents><Key>a</Key><Size>99999999999999999999</Size></Contents>",
      "<IsTruncated>false</IsTruncated><Contents><Key>a</Key><Key>b</Key><Size>1</Size></Contents>",
      "<IsTruncated>false</IsTruncated><Contents><Key><b/></Key><Size>1</Size></Contents>",
      "<IsTruncated>false</IsTruncated><a></b>", "<IsTruncated>false</IsTruncated><a", "<a b></a>",
      "<a b=c></a>", "<a b=\"<\"></a>", "<![CDATA[x]]>", "<?x?>", "&nbsp;", "&#0;", "&#xD800;",
      "&#+65;", "&#x110000;", "&", "& amp;", "</x>", "< a/>", "<!-- -", "<1", "<é/>",
    ])
  func malformed(_ content: String) {
    #expect(throws: XMLFault.self) {
      if try S3ListDocument(Self.list(content)) == nil { throw XMLFault(cause: "nil") }
    }
  }

  @Test(
    "text around a document is refused",
    arguments: ["x<a/>", "<a/>x", "<a/><b/>", "", "  ", "<!DOCTYPE a><a/>", "<a/><!DOCTYPE a>"])
  func around(_ text: String) {
    #expect(throws: XMLFault.self) {
      var reader = XMLReader(Array(text.utf8))
      while try reader.next() != nil {}
    }
  }

  @Test("more entries than a page has are refused")
  func many() {
    let entry = "<Contents><Key>a</Key><Size>1</Size></Contents>"
    #expect(throws: XMLFault(cause: "it has more than 1000 objects")) {
      _ = try S3ListDocument(Self.list(String(repeating: entry, count: 1_001)))
    }
  }

  @Test("nesting, names and keys are limited")
  func bounds() {
    let deep = String(repeating: "<a>", count: 1 << 20)
    let long = String(repeating: "a", count: 1 << 20)
    for content in [
      deep, "<\(long)/>", "<Contents><Key>\(long)</Key></Contents>",
      "<Contents><Size>\(long)</Size></Contents>", String(repeating: "&", count: 1 << 20),
    ] {
      #expect(throws: XMLFault.self) { _ = try S3ListDocument(Self.list(content)) }
    }
  }

  @Test("an error's code and region are read if they are well formed")
  func errors() {
    func read(_ content: String) -> S3ErrorDocument? {
      S3ErrorDocument(Array("<Error>\(content)</Error>".utf8))
    }
    let plain = read("<Code>NoSuchKey</Code><Message>secret</Message>")
    expectEqual(plain?.code, "NoSuchKey")
    #expect(plain?.region == nil)
    expectEqual(read("<Region>eu-west-1</Region><Code>A.B1</Code>")?.region, "eu-west-1")
    expectEqual(read("<Code>No such key</Code><Region>EU\nx</Region>"), read(""))
    #expect(S3ErrorDocument(Array("<html><body>404</body></html>".utf8)) == nil)
    #expect(S3ErrorDocument(Array("<Error><Code>Cut".utf8)) == nil)
    #expect(S3ErrorDocument([]) == nil)
  }

  @Test("random bytes and random changes end in a document or a fault")
  func random() throws {
    var random = SeededRandom()
    print("seed \(random.seed)")
    let alphabet = Array("<>/=\"'&;#x- aKey!?[]\n\0".utf8) + [0xC3, 0xFF]
    for _ in 0..<3_000 {
      let noise = (0..<random.below(60)).map { _ in random.pick(alphabet) }
      _ = try? S3ListDocument(noise)
      _ = S3ErrorDocument(noise)
      var changed = Array(Self.whole.utf8)
      for _ in 0...random.below(4) {
        let place = random.below(changed.count)
        switch random.below(3) {
        case 0: changed[place] = random.pick(alphabet)
        case 1: changed.remove(at: place)
        default: changed.insert(random.pick(alphabet), at: place)
        }
      }
      if let page = try? S3ListDocument(changed) { #expect(page.entries.count <= 2) }
      // A truncated document is never taken for a whole one.
      let cut = Array(Self.whole.utf8.prefix(random.below(Self.whole.utf8.count - 3)))
      #expect((try? S3ListDocument(cut)) == nil, "seed \(random.seed)")
    }
  }
}
