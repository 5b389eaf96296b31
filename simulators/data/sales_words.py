"""Word lists for generated sales orders. All people, streets and cities are invented.

E-mail addresses are in domains reserved for examples (RFC 2606); phone numbers are in the ranges that the
North American numbering plan (555-0100 to 555-0199) and Ofcom (020 7946 0000 to 0999) keep for fiction.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Region(NamedTuple):
    """`people` is a fixed, small number of customers.

    Regions without it share the other customers by `weight`.
    """

    name: str
    country: str
    currency: str
    weight: int
    people: int | None = None


REGIONS: Final = (
    Region("North", "GB", "GBP", 5),
    Region("South", "DE", "EUR", 6),
    Region("East", "FR", "EUR", 4),
    Region("West", "US", "USD", 8),
    Region("Central", "NL", "EUR", 3),
    Region("Highlands", "GB", "GBP", 0, people=7),
    Region("Islands", "IE", "EUR", 0, people=4),
)

#: Channel, how often it is used (a weight), and its store ids; a channel without stores has one id.
CHANNELS: Final = (
    ("web", 45, (1,)),
    ("app", 25, (2,)),
    ("store", 20, (11, 12, 13, 14, 15, 16)),
    ("marketplace", 7, (3,)),
    ("phone", 3, (4,)),
)

#: Relative number of orders in each hour of the day (UTC), from midnight.
HOURS: Final = (2, 1, 1, 1, 1, 2, 4, 6, 8, 9, 10, 11, 12, 11, 10, 9, 9, 10, 11, 12, 11, 9, 6, 4)

FIRST_NAMES: Final = (
    "Alvira Brendo Cassilu Dorvin Elsabeta Farrigan Gwendla Haskor Iluna Jorvik Kestrella Lomund Mirabo "
    "Nessavin Orlando-Test Petrusha Quillan Rosmerta Sandrik Tovalina Ulverin Vesparo Wilmara Xandilo "
    "Ysmene Zoravin"
).split()
LAST_NAMES: Final = (
    "Ashquill Bramblesworth Corriwick Dunmarrow Elderfenn Fogwhistle Greystaple Hollowmere Inkpenning "
    "Jessamyre Kettleburn Larkenshaw Mossbanker Nettlecombe Oakenfold-Sample Pebblewright Quaymarsh "
    "Rushbottle Silverthatch Thornapple Underleaf Vinterholm Wexcombe Yarrowdale"
).split()
STREETS: Final = (
    "Example Street",
    "Placeholder Lane",
    "Sample Road",
    "Specimen Square",
    "Testing Way",
    "Mockingbird Mews",
)
CITIES: Final = ("Exampleton", "Sampleford", "Testhaven", "Mockbridge", "Fictionville", "Port Specimen")
MAIL_DOMAINS: Final = ("example.org", "example.com", "example.net")
COUPONS: Final = ("WELCOME10", "SPRING", "FREESHIP", "LOYAL25")
DISCOUNTS: Final = ("0", "0", "0", "0", "0", "0.05", "0.1", "0.25", "0.3333")

MATERIALS: Final = ("Oak", "Linen", "Steel", "Glass", "Wool", "Clay")
GOODS: Final = (
    ("Mug", "Kitchen", 790),
    ("Bread Board", "Kitchen", 2450),
    ("Lantern", "Garden", 1995),
    ("Planter", "Garden", 3299),
    ("Throw", "Home", 4900),
    ("Picture Frame", "Home", 1249),
    ("Notebook Cover", "Office", 1575),
    ("Desk Tidy", "Office", 2199),
)

#: Valid text that is difficult for file formats, spreadsheets and careless joins.
AWKWARD_PRODUCTS: Final = (
    'Mug, "large", 2 for 1',
    "=SUM(A1:A9) poster",
    "+44 postcard",
    "-20% clearance bag",
    "@home door mat",
    "Two\nline print",
    "Carriage\r\nreturn print",
    "Tab\tseparated tray",
    "  blanks around  ",
    "Cr\u00e8me br\u00fbl\u00e9e dish",
    "Cre\u0300me bru\u0302le\u0301e dish",
    "\u65e5\u672c\u306e\u8336\u7897",
    "\u0427\u0430\u0439\u043d\u0438\u043a",
    "\u05e7\u05d5\u05de\u05e7\u05d5\u05dd",
    "Zero\u200bwidth vase",
    "Teapot \U0001fad6",
    "C:\\temp\\tray",
    "NULL",
    "'quoted'; DROP TABLE trays",
)
AWKWARD_STREETS: Final = (
    '1, "The Old Mill", Example Street',
    "Stra\u00dfe der Beispiele 7",
    "Rue de l'Exemple\nB\u00e2timent 3",
    "=12+3 Sample Road",
    "\u4f8b\u3048\u901a\u308a 5-6",
)
