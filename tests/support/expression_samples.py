"""Expressions for the comparison of the check and the job: every allowed function, casts of all dialects, and
syntax.
"""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from decimal import Decimal

_LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "price", "type": "int"}],
}
_PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [{"name": "city", "type": "string"}, {"name": "if", "type": "int"}],
}
#: The fields of the topic, and an event.
FIELDS = (
    ("word", "string"),
    ("n", "int"),
    ("big", "long"),
    ("real", "double"),
    ("flag", "boolean"),
    ("raw", "bytes"),
    ("price", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}),
    ("day", {"type": "int", "logicalType": "date"}),
    ("early", {"type": "long", "logicalType": "timestamp-micros"}),
    ("wall", {"type": "long", "logicalType": "local-timestamp-micros"}),
    ("codes", {"type": "array", "items": "string"}),
    ("nums", {"type": "array", "items": "int"}),
    ("lines", {"type": "array", "items": _LINE}),
    ("attrs", {"type": "map", "values": "string"}),
    ("place", _PLACE),
    ("either", ["null", "string", {"type": "long", "logicalType": "timestamp-millis"}]),
    ("if", "int"),
    ("order", "string"),
    ("current_date", "string"),
)
EVENT = {
    "id": "a",
    "at": datetime(2024, 3, 5, 10, tzinfo=UTC),
    "word": "1",
    "n": 2,
    "big": 3,
    "real": 1.5,
    "flag": True,
    "raw": b"abc",
    "price": Decimal("12.50"),
    "day": date(2024, 3, 5),
    "early": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
    "wall": datetime(2024, 3, 5, 10),
    "codes": ["x", "y"],
    "nums": [1, 2],
    "lines": [{"sku": "s", "price": 5}],
    "attrs": {"k": "v"},
    "place": {"city": "Oslo", "if": 1},
    "either": ("string", "text"),
    "if": 1,
    "order": "o",
    "current_date": "c",
}

_CALLS = """
    abs(n); add_months(day, 1); aggregate(nums, 0, (total, x) -> total + x); array(n, 2)
    array_contains(codes, 'x'); array_distinct(codes); array_join(codes, '-'); array_max(nums)
    array_min(nums); array_size(codes); ascii(word); bround(price, 1); cardinality(codes); cast(n as string)
    ceil(real); ceiling(price); char_length(word); character_length(word); coalesce(word, 'x')
    concat(word, 'x'); concat_ws('-', word, order); contains(word, 'b')
    convert_timezone('UTC', 'Europe/Berlin', wall); date_add(day, 1); date_diff(day, day)
    date_format(at, 'yyyy-MM-dd'); date_from_unix_date(n); date_part('year', at); date_sub(day, 1)
    date_trunc('month', at); dateadd(day, 1, at); datediff(day, day); day(at); dayofmonth(at); dayofweek(at)
    dayofyear(at); decode(raw, 'utf-8'); element_at(nums, 1); elt(1, word, order); endswith(word, 'c')
    exists(nums, x -> x > 1); extract(year from at); factorial(n); filter(nums, x -> x > 1)
    find_in_set(word, 'abc,b'); flatten(array(nums, nums)); floor(real); forall(nums, x -> x > 0)
    format_number(real, 2); format_string('%s', word); from_unixtime(big)
    from_utc_timestamp(at, 'Europe/Berlin'); get(nums, 0); greatest(n, 3); hex(raw); hour(at); if(flag, n, 0)
    ifnull(word, 'x'); initcap(word); instr(word, 'b'); isnan(real); isnotnull(word); isnull(word)
    last_day(day); lcase(word); least(n, 3); left(word, 1); length(word); levenshtein(word, 'abd')
    lower(word); lpad(word, 5, '0'); ltrim(word); make_date(2024, n, 1); make_timestamp(2024, n, 1, 1, 1, 1)
    map_contains_key(attrs, 'k'); map_keys(attrs); map_values(attrs); minute(at); mod(n, 2); month(at)
    months_between(at, at); named_struct('a', n); nanvl(real, 0); negative(n); next_day(day, 'MO')
    nullif(word, 'x'); nvl(word, 'x'); nvl2(word, 1, 2); octet_length(word); overlay(word placing 'x' from 1)
    pmod(n, 2); position('b' in word); positive(n); pow(n, 2); power(n, 2); quarter(at)
    regexp_extract(word, '(b)', 1); regexp_like(word, 'b'); regexp_replace(word, 'b', 'x')
    replace(word, 'b', 'x'); reverse(word); right(word, 1); rlike(word, 'b'); round(price, 1)
    rpad(word, 5, '0'); rtrim(word); second(at); sign(n); signum(n); size(codes); slice(nums, 1, 1)
    sort_array(nums); split(word, 'b'); split_part(word, 'b', 1); startswith(word, 'a'); struct(n, word)
    substr(word, 1); substring(word, 1, 1); substring_index(word, 'b', 1); timestamp_micros(big)
    timestamp_millis(big); timestamp_seconds(big); to_char(price, '99999.99'); to_date("2024", "yyyy")
    to_date(at); to_number('1', '9'); to_timestamp(at); to_utc_timestamp(at, 'UTC')
    transform(nums, x -> x + 1); translate(word, 'a', 'b'); trim(word); trunc(day, 'MM'); try_add(n, 1)
    try_cast(word as int); try_divide(n, 0); try_multiply(n, 2); try_subtract(n, 1)
    try_to_number(word, '999'); try_to_timestamp(word); typeof(n); ucase(word); unix_date(day)
    unix_millis(at); unix_seconds(at); upper(word); weekday(day); weekofyear(day)
    width_bucket(real, 0, 10, 5); year(at)
"""
#: Types of Spark and of other databases.
_TYPES = [
    *(
        "tinyint smallint int integer bigint float real double decimal decimal(9,2) numeric(9,2) string "
        "varchar(9) char(9)"
    ).split(),
    *(
        "binary boolean date timestamp timestamp_ntz timestamp_ltz interval text number bool datetime "
        "timestamptz"
    ).split(),
    *"bytea int64 float8 uuid json timestamp_s nvarchar(9) money serial array<string> map<string,int>".split(),
    *("double precision", "timestamp without time zone", "timestamp with time zone"),
]
_SYNTAX = """
    word::int; at at time zone 'UTC'; n << 1; word ?? 'x'; attrs ->> 'k'; word similar to 'a'; word glob 'a*'
    [1, 2]; codes[0:1]; n in (1,); N'a'; word collate utf8; extract(epoch from at); datediff('day', at, at)
    word not null; n == 2; n <=> 2; n != 2; word || 'x'; n div 2; n % 2; ~n; -n; !flag; n & 1; n | 1; n ^ 1
    n between 1 and 3; word like 'a%'; word ilike 'A%'; word rlike 'b'; word regexp 'b'
    case when flag then 1 else 2 end; case n when 1 then 'x' end; nums[0]; attrs['k']; place.city
    `place`.`city`; place['city']; place.`if`; `if` + 1; if + 1; if(if > 1, 1, 2); order; `order`
    lines[0].sku; lines.sku; lines.price[0]; transform(lines, l -> l.sku); exists(lines, l -> l.price > n)
    filter(lines, line -> line.price > 1); aggregate(lines, 0, (if, l) -> if + l.price)
    transform(codes, (c, i) -> c || i); either.string; either.long; either.bytes; current_date; `current_date`
    exists(nums, x -> current_date is null); current_timestamp; now(); at > 'now'; at > 'today'
    exists(array(at), x -> x < current_timestamp); word = 'now'; at > timestamp '2024-01-01'
    date '2024-01-01'; date 'now'; at + interval 1 day; at - interval '1' hour; day + 1; day - day; at - at
    wall > at; price * price; price / 0.5; n / 2; real + price; cast(real as decimal(9,2))
    try_cast(real as decimal(9,2)); 1e3; 1.5bd; 0x1F; X'1F'; 'it''s'; "text"; null; true; word + 1; word > 1
    n + flag; concat(word, nums); length(n); length(nums); upper(place); nums + 1; size(word); word and flag
    sum(n); count(*); first(n); row_number() over (order by n); (select 1); n in (select 1); rand(); uuid()
    reflect('a', 'b'); nothing; Word; place.town; lines[0].skus; attrs.k; word.x; kafka_offset; kafka_topic
    kafka_headers['h']; _file; _pos; `$$offset`; `$is_latest`; export_window_start; export_window_end > at
    own.lower(word); *; place.*; :limit; ?; @x; n as x; n; -- a comment; n /* comment */; try_to_date(word)
    array_sort(nums); map_filter(attrs, (k, v) -> v > 'a'); to_json(place); md5(word); sha2(word, 256)
    to_date(word, 'YYYY'); to_number(word, 'abc'); date_part('dayz', at); posexplode(nums); explode(nums)
    stack(1, n); raise_error('x'); timestampdiff(hour, at, at); timestampadd(hour, 1, at)
    dateadd(month, 1, at); substring(word from 1 for 2); ltrim('a' from word); trim(both 'a' from word)
    trim(leading from word); position('a', word); left(word, n); (n, word); struct(n as a).a; array(n)[0]
"""
#: What can't be in the parentheses of a cast.
OTHERS = [
    " ",
    "select 1",
    "drop table things",
    "n; n",
    "n >",
    "it's",
    "n as x, n as y",
    "cast(n as string) as x",
]


def every_expression() -> list[str]:
    casts = [
        form.format(field, type_)
        for form, field, type_ in itertools.product(
            ("cast({} as {})", "try_cast({} as {})", "{}::{}"), ("n", "early"), _TYPES
        )
    ]
    return [*_split(_CALLS), *_split(_SYNTAX), *casts]


def _split(text: str) -> list[str]:
    return [part.strip() for line in text.splitlines() for part in line.split(";") if part.strip()]
