# Apple's files with faults at random, which may be taken or refused (settlement rules, S2 to S6).
import random

from generate_settlement_files import HEADER, LOCALISED, File, one_region, paid, rows_of, whole
from settlement_writing import detailed

# What a damaged file may have in place of, or in front of, one of its characters. No quotes: the rules do
# not say whether a quoted cell may hold a line end.
FRAGMENTS = ["\t", "\n", ",", "0", "1", "-", ".", "S", "R", "EUR", "USD", "DE", "(", ")", " ", "\r\n",
             "12/25/2011", "Total_Rows\t4", "Total_Amount:", "\u00e4"]


def damaged(seed, count, month="FY2012-P04"):
    """Files with a fault or two at random, which may be taken or refused."""
    source = random.Random(seed)
    unquoted = {"name": "report.csv", "options": {"month": month}}
    lists = paid().replace('"', "")
    files = [
        ({}, whole(month)), ({"name": "85_EU.txt"}, one_region(month)),
        ({}, detailed(month, *rows_of(month))),
        (unquoted, lists), (unquoted, lists.replace(HEADER, LOCALISED)),
        (unquoted, lists + f",,\n{HEADER}\nAmericas (USD),1,0.01,0.01,0,0,0,0.01,,,USD\n"),
    ]
    for number in range(count):
        fields, text = source.choice(files)
        for _ in range(source.choice([1, 1, 1, 2])):
            text = _damage(source, text)
        yield File(f"damaged {number}", text.encode(), **fields)


def _damage(source, text):
    """The text with a fragment more, or in place of a character; without some; or with a line elsewhere."""
    at, fragment = source.randrange(len(text)), source.choice(FRAGMENTS)
    kind = source.randrange(5)
    if kind < 2:
        return text[:at] + fragment + text[at + kind :]
    if kind == 2:
        return text[:at] + text[at + source.randrange(1, 4) :]
    lines = text.splitlines(keepends=True)
    moved = lines[source.randrange(len(lines))]
    if kind == 3:
        lines.remove(moved)
    lines.insert(source.randrange(len(lines) + 1), moved)
    return "".join(lines)
