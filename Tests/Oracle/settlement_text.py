# The bytes of a file of Apple's as lines of text, and what kind of report they are (settlement rules, S2).
import hashlib
import re
import zlib

from settlement_values import SPACE, Refused

MOST_BYTES = 256 << 20
LOOKED_AT = 20
DETAILED, FINANCIAL, OVERVIEW = "detailed", "financial", "overview"
HEADERS = {
    DETAILED: {"transaction date", "settlement date"},
    FINANCIAL: {"start date", "end date", "extended partner share"},
}
OVERVIEW_TITLE = "Payments and Financial Reports"
OVERVIEW_FIRST = {"region (currency)", "country or region (currency)"}
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def unpacked(data):
    """The bytes, or what every gzip member in them holds."""
    if not data.startswith(b"\x1f\x8b"):
        if len(data) > MOST_BYTES:
            raise Refused("too large")
        return data
    parts, size = [], 0
    while data:
        reader = zlib.decompressobj(wbits=31)
        try:
            part = reader.decompress(data, MOST_BYTES + 1 - size)
        except zlib.error:
            raise Refused("damaged gzip") from None
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise Refused("too large")
        if not reader.eof:
            raise Refused("damaged gzip")
        data = reader.unused_data
    return b"".join(parts)


def decoded(data):
    """The text after its byte order mark, else UTF-8, else ISO 8859-1."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            try:
                text = data[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                raise Refused("not the encoding of its mark") from None
            break
    else:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = data.decode("iso-8859-1")
    if "\0" in text:
        raise Refused("NUL", 1 + len(re.findall("\r\n|\r|\n", text[: text.index("\0")])))
    return text


def lines_of(data):
    """(hex digest of the unpacked bytes, the lines without their ends)."""
    data = unpacked(data)
    lines = re.split("\r\n|\r|\n", decoded(data))
    # The last line may lack its end; after an end there is none.
    return hashlib.sha256(data).hexdigest(), lines[:-1] if lines[-1] == "" else lines


def cells(line):
    """A line's cells by tabs."""
    return [cell.strip(SPACE) for cell in line.split("\t")]


def is_blank(line):
    return not line.strip(SPACE)


def csv_cells(line):
    """A line's cells by RFC 4180; text behind a closing quote belongs to the cell. None if a quote
    stays open."""
    found, place = [], 0
    while True:
        text = ""
        if line.startswith('"', place):
            place += 1
            while True:
                end = line.find('"', place)
                if end < 0:
                    return None
                text += line[place:end]
                place = end + 1
                if not line.startswith('"', place):
                    break
                text += '"'
                place += 1
        end = line.find(",", place)
        text += line[place:] if end < 0 else line[place:end]
        found.append(text.strip(SPACE))
        if end < 0:
            return found
        place = end + 1


def filled(row):
    """The cells without the empty ones at the end."""
    count = len(row)
    while count and not row[count - 1]:
        count -= 1
    return row[:count]


def lowered(names):
    return [name.lower() if name.isascii() else name for name in names]


def is_overview_header(line):
    """S6: by its English first column, or a localised one by its form."""
    row = csv_cells(line)
    if row is None:
        return False
    if OVERVIEW_FIRST & set(lowered(row)):
        return True
    row = filled(row)
    return (
        len(row) in (11, 12)
        and row[0].endswith(")")
        and all(row)
        and not any(re.search("[0-9]", cell) for cell in row[1:])
    )


def kind_of(lines):
    """(the kind, the index of the header); an overview's is that of its first, None if it has none.

    Skipped lines are none of the first ones.
    """
    first = [index for index, line in enumerate(lines) if not is_blank(line)][:LOOKED_AT]
    for index in first:
        if HEADERS[DETAILED] <= set(lowered(cells(lines[index]))):
            return DETAILED, index
    if first and HEADERS[FINANCIAL] <= set(lowered(cells(lines[first[0]]))):
        return FINANCIAL, first[0]
    first = [line for line in lines if csv_cells(line) is None or any(csv_cells(line))][:LOOKED_AT]
    title = csv_cells(first[0]) if first else None
    if (title and OVERVIEW_TITLE in title[0]) or any(map(is_overview_header, first)):
        header = next((i for i, line in enumerate(lines) if is_overview_header(line)), None)
        return OVERVIEW, header
    raise Refused("not a report")
