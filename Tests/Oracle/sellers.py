# Apple's selling entity of a country on a day (settlement rules, S17).
#
# Source: Schedule 2, Exhibit A of the developer agreement, as of 2020-09, and Apple's notice of 2024-10
# on Apple Services Pte. Ltd.
from dates import days_from_text
from settlement_values import month_number, month_span

# Nothing is said of earlier months.
FIRST_MONTH = month_number(2021, 1)
FIRST_DAY = month_span(FIRST_MONTH)[0]
SINGAPORE_DAY = days_from_text("2024-10-26")
SINGAPORE_REGION = "AP"

US, CANADA, AUSTRALIA = "Apple Inc.", "Apple Canada Inc.", "Apple Pty Limited"
JAPAN, LATIN = "iTunes K.K.", "Apple Services LATAM LLC"
IRELAND, SINGAPORE = "Apple Distribution International Ltd.", "Apple Services Pte. Ltd."

_FROM_FIRST = {
    US: "US",
    CANADA: "CA",
    AUSTRALIA: "AU NZ",
    JAPAN: "JP",
    LATIN: "AG AI AR BB BM BO BR BS BZ CL CO CR DM DO EC GD GT GY HN JM KN KY LC MS MX NI PA PE PY SR SV TC"
           " TT UY VC VE VG",
    IRELAND: "AE AF AL AM AO AT AZ BA BE BF BG BH BJ BN BT BW BY CD CG CH CI CM CN CV CY CZ DE DK DZ EE EG"
             " ES FI FJ FM FR GA GB GE GH GM GR GW HK HR HU ID IE IL IN IQ IS IT JO KE KG KH KR KW KZ LA LB"
             " LK LR LT LU LV LY MA MD ME MG MK ML MM MN MO MR MT MU MV MW MY MZ NA NE NG NL NO NP NR OM PG"
             " PH PK PL PT PW QA RO RS RU RW SA SB SC SE SG SI SK SL SN ST SZ TD TH TJ TM TN TO TR TW TZ UA"
             " UG UZ VN VU XK YE ZA ZM ZW",
}
_SINCE_2024 = "BT BN KH FM FJ KR LA MO MV MN MM NR NP PW PG SB LK TO VU"

# Of each country the entities with their first days, the latest first.
TABLE = {country: [(FIRST_DAY, name)] for name, text in _FROM_FIRST.items() for country in text.split()}
for _country in _SINCE_2024.split():
    TABLE[_country].insert(0, (SINGAPORE_DAY, SINGAPORE))


def seller_on(country, day):
    """The entity; empty where the table has none."""
    return next((name for first, name in TABLE.get(country, ()) if day >= first), "")


def seller(country, month, region, transacted):
    """The seller of a row of a report of that month and region; `transacted`: its day, or None."""
    if month < FIRST_MONTH or country not in TABLE:
        return ""
    if transacted is not None:
        return seller_on(country, transacted)
    if region == SINGAPORE_REGION:
        return SINGAPORE
    first, last = (seller_on(country, day) for day in month_span(month))
    return first if first == last else ""
