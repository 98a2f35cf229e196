"""Rows as keys and values, and the names of topics."""

import json

from ottla.cdc.json_text import Types
from ottla.cdc.table import Field, Table, TableName, topic_name

FIELDS = [Field("b", 25), Field("n", 23), Field('odd "name', 16), Field("a", 23)]


def test_the_key_has_its_columns_in_the_tables_order_and_the_value_has_all() -> None:
    table = Table(TableName("public", "t"), "x.public.t", FIELDS, ["a", "b"], Types())
    row = ["x", "5", None, "7"]
    assert table.key(row) == b'{"b":"x","a":7}'
    assert table.value(row) == b'{"b":"x","n":5,"odd \\"name":null,"a":7}'
    assert json.loads(table.value(["ü", "1", "t", "2"]))['odd "name'] is True
    assert table.key_texts(row) == ["x", "7"]


def test_topics_bear_the_names_of_their_tables() -> None:
    assert topic_name("shop", TableName("public", "orders")) == "shop.public.orders"
    assert topic_name("shop", TableName("My Schema", "größe")) == "shop.My_Schema.gr__e"
    assert len(topic_name("p" * 300, TableName("s", "t"))) == 249
    assert TableName('a"b', "t").quoted == '"a""b"."t"'
