# Files that an import must refuse, each with its cause, and odd ones that it must take (settlement rules,
# S2 to S6).
import gzip
import io
import zipfile
from dataclasses import dataclass, field

from settlement_values import MONTH_NAMES, month_from_name
from settlement_writing import (
    COLUMNS, DETAILED_COLUMNS, LIST_HEADER, detailed, financial, list_by_country, overview, sale, tabbed,
)

HEADER = ("Region (Currency),Units Sold,Earned,Pre-Tax Subtotal,Input Tax,Adjustments,Withholding Tax,"
          "Total Owed,Exchange Rate,Proceeds,Bank Account Currency")
BALANCE_HEADER = HEADER.replace("Units Sold,", "Units Sold,Balance,")
LOCALISED = ("Land oder Region (Währung),Verkaufte Einheiten,Verdient,Zwischensumme,Vorsteuer,Anpassungen,"
             "Quellensteuer,Gesamtbetrag,Wechselkurs,Erlös,Währung des Bankkontos")
LOCALISED_BALANCE = LOCALISED.replace("Einheiten,", "Einheiten,Saldo,")


@dataclass
class File:
    """A file under the name and options of a command; `cause`: why it is refused, None if it is taken."""

    situation: str
    data: bytes
    cause: str | None = None
    name: str = "85000001_0112_ZZ.txt"
    options: dict = field(default_factory=dict)
    # Of a file that is taken: its exceptions by name.
    exceptions: tuple = ()


def rows_of(month):
    """A few rows in two share currencies, one of them a Return."""
    return [
        sale(3, "9.99", share="5.88", product=f"odd.{month}"),
        sale(-1, "9.99", share="5.88", flag="R", product=f"odd.{month}"),
        sale(2, "4.99", share="2.93", country="FR", product=f"odd.{month}"),
        sale(1, "1500", "JPY", "JP", share="955", product=f"odd.{month}"),
    ]


def totals_of(rows):
    return f"Total_Rows\t{len(rows)}\nTotal_Units\t6\n" + list_by_country(rows)


def whole(month, change=lambda row: row, **options):
    """A single file with its totals; `change`: of its first row, which the totals don't show."""
    first, *rest = rows = rows_of(month)
    return financial(month, change(first), *rest, **{"totals": totals_of(rows)} | options)


def one_region(month, totals="Total_Rows\t2\nTotal_Amount\t23.50\nTotal_Units\t4\n"):
    """A report of one share currency."""
    return financial(month, *rows_of(month)[:1], sale(1, "9.99", share="5.86"), totals=totals)


def title_of(month):
    """`October, 2025` of FY2026-P01."""
    number = month_from_name(month) - 3
    return f"{MONTH_NAMES[number % 12]}, {number // 12}"


def cell(name, value):
    """A change of a row that sets one cell."""
    return lambda row: row | {name: value}


def paid(amount="5.88", total=None, before="", header=None, title=None):
    """An overview of one row in EUR, with its payment."""
    row = f"Euro-Zone (EUR),1,{before}{amount},{amount},0,0,0,{amount},1.00000,{amount},EUR"
    columns = header or (BALANCE_HEADER if before else HEADER)
    payment = f',,,,,,,,,,"{total or amount}" EUR'
    return overview(title, row, ",,", payment, ",,,Paid to BANK", columns=columns)


# Values of a required cell that cannot be read.
UNREADABLE = [
    ("Quantity", "1.5"), ("Quantity", ""), ("Quantity", "1e3"), ("Quantity", "(3)"), ("Quantity", "1,00"),
    ("Quantity", "3."), ("Quantity", "0,003"), ("Quantity", "1234567890123"), ("Quantity", "--3"),
    ("Partner Share", "5,88"), ("Partner Share", "€5.88"), ("Partner Share", "5.8800000"),
    ("Partner Share", "12,34.50"), ("Partner Share", "1.234,56"), ("Extended Partner Share", ".5"),
    ("Extended Partner Share", "17.64 EUR"), ("Extended Partner Share", "NaN"),
    ("Partner Share Currency", "EURO"), ("Partner Share Currency", "E1R"), ("Partner Share Currency", ""),
    ("Sales or Return", "X"), ("Sales or Return", "s"), ("Sales or Return", ""),
    ("Product Type Identifier", ""), ("Country Of Sale", "DEU"), ("Country Of Sale", "D1"),
    ("Country Of Sale", ""), ("Customer Price", "9,99"), ("Customer Price", "(9.99)"),
    ("Customer Price", ""), ("Customer Currency", "€"), ("Vendor Identifier", ""),
    ("Start Date", "2011-12-25"), ("Start Date", "13/01/2011"), ("End Date", "02/30/2012"),
    ("End Date", "1/28/2012"),
]


def _bytes_refused(month):
    text = whole(month)
    packed = gzip.compress(text.encode(), mtime=0)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("85_ZZ.txt", text)
    yield "an empty file", b"", "not a report"
    yield "an empty line", b"\n", "not a report"
    yield "UTF-16 without a mark", text.encode("utf-16-le"), "NUL"
    yield "a NUL in a cell", text.replace("odd.", "odd\0", 1).encode(), "NUL"
    yield "UTF-8 that is damaged behind its mark", b"\xef\xbb\xbf" + text.encode() + b"\xff", "its mark"
    yield "UTF-16 of an odd length", b"\xff\xfe" + text.encode("utf-16-le") + b"a", "its mark"
    yield "UTF-16 with half a character", b"\xff\xfe\x00\xd8" + text.encode("utf-16-le"), "its mark"
    yield "UTF-32 with its mark", text.encode("utf-32"), "NUL"
    yield "gzip that is cut", packed[:-3], "damaged gzip"
    yield "gzip with another checksum", packed[:-8] + b"\1\2\3\4" + packed[-4:], "damaged gzip"
    yield "gzip followed by text", packed + b"text", "damaged gzip"
    yield "gzip followed by zeros", packed + bytes(512), "damaged gzip"
    yield "gzip whose second member is damaged", packed + packed[:20], "damaged gzip"
    yield "gzip within gzip", gzip.compress(packed, mtime=0), "NUL"
    yield "a ZIP archive", archive.getvalue(), ""
    yield "an HTML page", b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", "not a report"
    yield "a PDF", b"%PDF-1.4\n1 0 obj\n", "not a report"
    yield "the same with commas", text.replace("\t", ",").encode(), "not a report"


def _texts_refused(month):
    rows, other = rows_of(month), f"FY{int(month[2:6]) + 1}{month[6:]}"
    text = whole(month)
    yield ("Sales and Trends", "Provider\tProvider Country\tSKU\tDeveloper\tTitle\tVersion\tProduct Type "
           "Identifier\tUnits\tDeveloper Proceeds\tBegin Date\tEnd Date\tCustomer Currency\tCountry Code\n"
           "APPLE\tUS\tpro\tme\tApp\t1.0\tIAY\t1\t7.00\t01/01/2012\t01/01/2012\tUSD\tUS\n", "not a report")
    yield ("the transaction tax report", "Transaction Date\tSettlement Date\tState\tCounty\tCity\tTax Rate\t"
           "Customer Price\tPre-Tax Price\tTax Amount\n01/01/2012\t01/02/2012\tNY\tKings\tBrooklyn\t8.875\t"
           "9.99\t9.18\t0.81\n", "a column is missing")
    for name, value in UNREADABLE:
        yield f"{name} {value!r}", whole(month, cell(name, value)), "unreadable"
    for name in COLUMNS:
        kept = [column for column in COLUMNS if column != name]
        if name == "Promo Code":
            continue
        cause = "a column is missing"
        if name in ("Start Date", "End Date", "Extended Partner Share"):
            cause = "not a report"
        yield f"no column {name}", whole(month, columns=kept), cause
    yield "a name that stands twice", whole(month, columns=[*COLUMNS, "quantity"]), "twice"
    yield "an unread name that stands twice", whole(month, columns=[*COLUMNS, "promo code"]), "twice"
    yield "a cell beyond the header", text.replace("\tEUR\n", "\tEUR\tmore\n", 1), "beyond the header"
    yield "Total_Rows one too many", text.replace("Total_Rows\t4", "Total_Rows\t5"), "differs"
    yield "Total_Rows that is no number", text.replace("Total_Rows\t4", "Total_Rows\tfour"), "unreadable"
    yield "Total_Units of neither sum", text.replace("Total_Units\t6", "Total_Units\t7"), "differs"
    yield "an amount a cent off in the list", text.replace("EUR\t2\t11.76", "EUR\t2\t11.77"), "differs"
    yield "units off in the list", text.replace("EUR\t2\t11.76", "EUR\t4\t11.76"), "differs"
    listed = list_by_country(rows).splitlines(keepends=True)
    yield "a country missing in the list", whole(month, totals="".join(listed[:-1])), "differs"
    yield "a country twice in the list", whole(month, totals="".join([*listed, listed[1]])), "differs"
    yield "a country too many", whole(month, totals="".join([*listed, "AT\tEUR\t0\t0.00\n"])), "differs"
    yield "a list of no lines", whole(month, totals=listed[0]), "differs"
    yield "Total_Amount a cent off", one_region(month).replace("23.50", "23.51"), "differs"
    yield "no totals", whole(month, totals=""), "cut"
    yield "Total_Units alone", whole(month, totals="Total_Units\t5\n"), "cut"
    yield "no rows", financial(month, totals="Total_Rows\t0\n"), "without rows"
    last_row = text.splitlines(keepends=True)[4]
    yield "a row after a total", text.replace("Total_Units", last_row + "Total_Units"), "after a total"
    yield "a row after the list", text + last_row, "after a total"
    stranger = financial(other, rows[0], totals="").splitlines()[1]
    yield "mixed months", financial(month, *rows, totals="") + f"{stranger}\nTotal_Rows\t5\n", "mixed months"
    yield "a calendar month", _dated(month, "01/01/2012", "01/31/2012"), "no fiscal month"
    yield "a month that begins a day late", _dated(month, "12/26/2011", "01/28/2012"), "no fiscal month"
    yield "two fiscal months", _dated(month, "12/25/2011", "02/25/2012"), "no fiscal month"
    yield "a month before the calendar", _dated(month, "08/27/2006", "09/30/2006"), "no fiscal month"


def _dated(month, start, end):
    rows = [row | {"Start Date": start, "End Date": end} for row in rows_of(month)]
    return financial(month, *rows, totals=totals_of(rows))


def _detailed_refused(month):
    rows = rows_of(month)
    text = detailed(month, *rows)
    head = text.splitlines(keepends=True)
    yield "a detailed report without its list", detailed(month, *rows, totals=""), "cut"
    yield "a detailed report with Total_Rows alone", detailed(month, *rows, totals="Total_Rows\t4\n"), "cut"
    yield "a detailed report without its End Date", "".join([*head[:2], *head[3:]]), "its days are missing"
    yield "a detailed report of no month", text.replace("End Date\t", "End Date\t12/25/2011x"), "unreadable"
    yield "no Transaction Date in a row", detailed(month, rows[0] | {"Transaction Date": " "}), "unreadable"
    no_day = {"Settlement Date": "02/30/2012"}
    yield "no such Settlement Date", detailed(month, rows[0] | no_day), "unreadable"
    yield "a header beyond line 20", "Vendor\n" * 20 + text, "not a report"


def _overviews_refused(month):
    title = title_of(month)
    text = paid(title=title)
    estimate = HEADER.replace(",Exchange Rate,Proceeds", "")
    row = "Euro-Zone (EUR),1,5.88,5.88,0,0,0,5.88,EUR"
    yield "estimates of an open month", overview(title, row, columns=estimate), "an estimate"
    no_rate = HEADER.replace("Exchange Rate,", "")
    yield "no column for the rate", overview(title, columns=no_rate), "an estimate"
    yield "no column for proceeds", overview(title, columns=HEADER.replace(",Proceeds", "")), "an estimate"
    yield "an overview of no rows", overview(title), "without rows"
    yield "a payment of no rows", overview(title, ',,"0.00" EUR'), "without rows"
    for name in ("Earned", "Total Owed", "Bank Account Currency"):
        kept = ",".join(column for column in HEADER.split(",") if column != name)
        yield f"an overview without {name}", overview(title, columns=kept), "a column is missing"
    alone = f'"Payments and Financial Reports ({title})",,\n,,\n'
    yield "an overview without a list", alone, "without a list"
    yield "a cell beyond an overview's header", overview(title, row.replace(",EUR", ",,,EUR,x")), "beyond"
    yield "a column of an overview that stands twice", overview(title, columns=HEADER + ",Earned"), "twice"
    yield "an overview of no month", paid(), "no month"
    yield "a month that is none", paid(title="Smarch, 2012"), "no month"
    yield "a payment a cent off", text.replace('"5.88" EUR', '"5.89" EUR'), "the payment differs"
    yield "a payment in another currency", text.replace('"5.88" EUR', '"5.88" USD'), "the payment differs"
    yield "a payment of nothing", text.replace("1.00000,5.88,EUR", ",,EUR"), "the payment differs"
    yield "a row without a currency", text.replace("(EUR)", "EUR"), "without a currency"
    yield "decimal commas", text.replace("1,5.88,5.88", '1,"5,88",5.88'), "unreadable"
    yield "a rate that is none", text.replace("1.00000", "1:1"), "unreadable"
    yield "a quote that stays open", text.replace(",1.00000", ',"1.00000'), "quote"


def refused(month="FY2012-P04"):
    """Files that are refused whatever the ledger holds, all of one month; 2011-12-25 to 2012-01-28."""
    for situation, data, cause in _bytes_refused(month):
        yield File(situation, data, cause)
    for made in (_texts_refused, _detailed_refused, _overviews_refused):
        for situation, text, cause in made(month):
            yield File(situation, text.encode(), cause)
    text = one_region(month).encode()
    names = "report.txt 85_eu.txt 85_EUR.txt 85_EU.csv 85_EU.txt.zip 85EU.txt 85_Z2.txt"
    for name in names.split():
        yield File(f"no region in {name}", text, "name the region", name)


def _taken(month):
    """(situation, data, exceptions, name, options)."""
    rows, text, title = rows_of(month), whole(month), title_of(month)
    plain = text.encode()
    yield "as Apple writes it", plain, ()
    yield "UTF-8 with a mark", b"\xef\xbb\xbf" + plain, ()
    yield "UTF-16LE with a mark", b"\xff\xfe" + text.encode("utf-16-le"), ()
    yield "UTF-16BE with a mark", b"\xfe\xff" + text.encode("utf-16-be"), ()
    yield "ISO 8859-1", text.replace("\todd", "\tödd").encode("iso-8859-1"), ()
    yield "CR line ends", plain.replace(b"\n", b"\r"), ()
    yield "CRLF line ends", plain.replace(b"\n", b"\r\n"), ()
    yield "no end of the last line", plain[:-1], ()
    yield "blank lines anywhere", plain.replace(b"\n", b"\n\t\t\n \n"), ()
    yield "blank lines before the header", b"\n\t\n" * 20 + plain, ()
    yield "gzip", gzip.compress(plain, mtime=0), (), {"name": "85000001_0112_ZZ.txt.gz"}
    yield "gzip of two members", gzip.compress(plain[:99], mtime=0) + gzip.compress(plain[99:], mtime=0), ()
    yield "columns in another order", whole(month, columns=["Start Date", *COLUMNS[:0:-1]]).encode(), ()
    yield "names in other letters, with spaces", whole(
        month, columns=COLUMNS).replace("Country Of Sale\tPromo", " COUNTRY of sale \tPromo").encode(), ()
    older = [{"Vendor Identifier": "SKU", "Sales or Return": "Sale or Return"}.get(c, c) for c in COLUMNS]
    yield "SKU and Sale or Return", whole(month, columns=older).encode(), ()
    yield "columns that are not read", whole(month, columns=[*COLUMNS, "Title", "Grid"]).encode(), ()
    yield "cells with spaces", plain.replace(b"\t9.99\t", b"\t 9.99 \t"), ()
    yield "empty cells missing at the end", whole(
        month, columns=[*COLUMNS, "Region", "Title"]).replace("\t\t\n", "\n").encode(), ()
    yield "thousands commas", financial(
        month, sale(1000, "1234.50", share="1000.25", product=f"odd.{month}")).replace(
            "1234.50", "1,234.50").replace("\t1000\t", "\t1,000\t").replace(
                "1000250.00", "1,000,250.00").encode(), ()
    yield "plus signs, zeros behind the point", whole(
        month, cell("Quantity", "+3.00")).encode(), ()
    yield from _totals_taken(month)
    yield from _odd_rows_taken(month)
    yield from _detailed_taken(month, rows)
    yield from _overviews_taken(month, title)


def _totals_taken(month):
    rows, text = rows_of(month), whole(month)
    own = {"name": "85000001_0112_EU.txt"}
    yield "totals with colons", text.replace("Total_Rows\t", "Total_Rows:").encode(), ()
    yield "Total_Units of purchases alone", text.replace("Total_Units\t6", "Total_Units\t6.0").encode(), ()
    yield "Total_Units of the net", text.replace("Total_Units\t6", "Total_Units\t5").encode(), ()
    yield "the list with purchases alone", text.replace("EUR\t2\t11.76", "EUR\t3\t11.76").encode(), ()
    yield "Total_Amount of several currencies", text.replace(
        "Total_Rows\t4", "Total_Rows\t4\nTotal_Amount\t1,234.56").encode(), ()
    yield "the list alone", whole(month, totals=list_by_country(rows)).encode(), ()
    yield "Total_Amount alone", one_region(month, "Total_Amount:23.5\n").encode(), (), own
    yield "all totals of one currency", one_region(month).encode(), (), own
    yield "a region by option", one_region(month).encode(), (), {
        "name": "report.txt", "options": {"region": "EU"}}
    yield "an option before the name", one_region(month).encode(), (), own | {"options": {"region": "AU"}}
    yield "a list without amounts", whole(month, totals=(
        "Total_Rows\t4\nCountry Of Sale\tQuantity\nDE\t2\n")).encode(), ("totals_unread",)
    yield "a list with a line of its own", text.encode() + b"Total\t\t5\n", ("totals_unread",)


def _odd_rows_taken(month):
    rows = rows_of(month)
    yield "codes in lower case", whole(month, cell("Country Of Sale", "de")).encode(), ()
    yield "a sale with a negative quantity", financial(
        month, *rows, sale(-2, "1.99", product=f"odd.{month}")).encode(), ("sign_disagrees",)
    yield "a return with a positive quantity", financial(
        month, *rows, sale(2, "1.99", flag="R", product=f"odd.{month}")).encode(), ("sign_disagrees",)
    yield "an extended share a cent off", financial(month, *rows, sale(
        3, "1.99", share="1.17", product=f"odd.{month}", Extended_Partner_Share="3.52")).encode(), (
            "share_disagrees",)
    yield "a currency outside the table", financial(
        month, *rows, sale(1, "1.99", "QQQ", product=f"odd.{month}")).encode(), ("currency_unknown",)
    yield "a price below zero of nothing", whole(month, cell("Customer Price", "-0.00")).encode(), ()


def _detailed_taken(month, rows):
    own = {"name": "85000001_0112_EU.txt"}
    yield "a detailed report", detailed(month, *rows).encode(), ()
    yield "a detailed report with columns in another order", detailed(
        month, *rows, columns=DETAILED_COLUMNS[::-1]).encode(), ()
    yield "a detailed report under a region's name", detailed(month, *rows).encode(), (), own
    yield "a detailed report settled outside", detailed(
        month, *rows[1:], rows[0] | {"Settlement Date": "01/01/2031"}).encode(), ("settled_outside",)
    yield "a detailed report with a transaction of long ago", detailed(
        month, *rows[1:], rows[0] | {"Transaction Date": "07/11/2008"}).encode(), ()
    yield "a detailed report whose list is not read", detailed(month, *rows, totals=tabbed(
        [LIST_HEADER[:2], ["DE", "EUR"]])).encode(), ("totals_unread",)
    yield "a detailed report without an end of its last line", detailed(month, *rows)[:-1].encode(), ()


def _overviews_taken(month, title):
    tied = ("earned_disagrees",)
    yield "an overview", paid(title=title).encode(), tied
    yield "an overview by --month", paid().encode(), tied, {"options": {"month": month}}
    yield "a title before --month", paid(title=title).encode(), tied, {"options": {"month": "FY2031-P01"}}
    yield "a title without quotes", paid(title=title).replace('"', "", 2).encode(), tied
    yield "an overview behind blank lines", ("\n,,\n" + paid(title=title)).encode(), tied
    yield "an overview with Balance", paid(title=title, before="0,").encode(), tied
    yield "a localised overview", paid(title=title, header=LOCALISED).encode(), tied
    yield "a localised overview in ISO 8859-1", paid(title=title, header=LOCALISED).encode("iso-8859-1"), tied
    yield "a localised overview with Balance", paid(
        title=title, before="0,", header=LOCALISED_BALANCE).encode(), tied
    yield "the newer name of the first column", paid(
        title=title, header="Country or " + HEADER).encode(), tied
    yield "columns in another order", overview(
        title, "Japan (JPY),EUR,1.16,0.00817,142,-37,179", columns=(
            "Region (Currency),Bank Account Currency,Proceeds,Exchange Rate,Total Owed,Withholding Tax,"
            "Earned")).encode(), tied
    yield "an overview without an end of its last line", overview(
        title, "Euro-Zone (EUR),1,5.88,5.88,0,0,0,5.88,,,EUR",
        "Japan (JPY),1,100,100,0,0,0,100,,,EUR")[:-1].encode(), ("earned_disagrees", "earned_disagrees")
    yield "a payment without quotes", paid(title=title).replace('"5.88" EUR', '"5.88 EUR"').encode(), tied
    yield "thousands commas", paid("1,263.38", title=title).replace(
        "1,263.38", '"1,263.38"').replace('""1,263.38"" EUR', '"1,263.38" EUR').encode(), tied
    carried = 'Americas (USD),1,0.01,0.01,0,0,0,0.01,,,USD'
    yield "a list that is carried forward", (paid(title=title) + f",,\n{HEADER},\n{carried}\n").encode(), (
        "earned_disagrees", "earned_disagrees")
    yield "a paid list behind one carried forward", (
        overview(title, carried, ",,") + paid().split("\n", 2)[2]).encode(), (
            "earned_disagrees", "earned_disagrees")
    yield "a row that is not paid beside one that is", overview(
        title, "Euro-Zone (EUR),1,5.88,5.88,0,0,0,5.88,1.00000,5.88,EUR", carried,
        ',,,,,,,,,,"5.88" EUR').encode(), ("earned_disagrees", "earned_disagrees")
    yield "owed that is not its sum", overview(
        title, "Euro-Zone (EUR),1,5.88,5.88,0,0,0,5.89,1.00000,5.89,EUR", ',,,"5.89" EUR').encode(), (
            "earned_disagrees", "owed_disagrees")
    yield "rates of each form, in regions that a spreadsheet would run", overview(
        title, '=Euro (EUR),"1,000",7.77,7.77,0,0,0,7.77,"+1,000.50",0.01,EUR',
        '-Swiss "x" (CHF),-1,-9.00,-9.00,0,0,0,-9.00,-0.123456789012,8.50,EUR',
        "(JPY),1,1,1,0,0,0,1,007.10,1,EUR", ',,,"9.51" EUR').encode(), ("earned_disagrees",) * 3
    yield "empty amounts", overview(title, "Euro-Zone (EUR),,,,,,,,,,EUR").encode(), ()
    yield "an overview of nothing paid yet", overview(title, carried).encode(), tied


def taken(first="FY2014-P01"):
    """Odd files that are taken, each of a month of its own from the first on."""
    year, month = int(first[2:6]), int(first[8:])
    count = len(list(_taken(first)))
    for index in range(count):
        name = f"FY{year + (month - 1 + index) // 12:04}-P{(month - 1 + index) % 12 + 1:02}"
        situation, data, exceptions, *rest = list(_taken(name))[index]
        fields = rest[0] if rest else {}
        yield File(f"{situation} ({name})", data, None, exceptions=exceptions, **fields)
