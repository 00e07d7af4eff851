"""The questions as data: columns, SQL over them that all engines share, and the answer in Python."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

__all__ = ["CLASSES", "LAYOUTS", "QUESTIONS", "Column", "Question", "Rows", "needle", "normal"]

Documents: TypeAlias = Sequence[Mapping[str, Any]]
Rows: TypeAlias = list[tuple[Any, ...]]

LAYOUTS = ("string", "variant", "shredded", "view")
CLASSES = ("path", "whole object", "array element", "whole array", "needle")


class Column(NamedTuple):
    """A path of a document, or of an element of an array, and its type: string, bigint, double or object."""

    path: str
    kind: str

    @property
    def steps(self) -> list[str | int]:
        """Return the names and the positions of the path; positions count from 0."""
        names = self.path.replace("[", ".").replace("]", "").split(".") if self.path else []
        return [int(name) if name.isdigit() else name for name in names]


@dataclass(frozen=True)
class Question:
    """A question, and its answer in plain Python.

    Attributes:
        kind: The class that it belongs to.
        text: What is asked.
        columns: The columns by their names in `sql`.
        sql: A query over these columns in `rows`.
        answer: The rows of the answer; objects as dicts, in any order.
        array: The array whose elements are the rows. Empty if documents are.
    """

    kind: str
    text: str
    columns: Mapping[str, Column]
    sql: str
    answer: Callable[[Documents], Rows]
    array: str = ""


def needle(documents: Documents) -> Mapping[str, Any]:
    """Return the document that is searched by its id."""
    return documents[len(documents) * 7 // 10]


def _latitudes(documents: Documents) -> Rows:
    found = defaultdict(list)
    for each in documents:
        found[each["geo"]["country"]].append(each["geo"]["lat"])
    return [(country, len(values), max(values)) for country, values in found.items()]


def _devices(documents: Documents) -> Rows:
    counts = Counter(json.dumps(each["device"]) for each in documents)
    return [(json.loads(device), count) for device, count in counts.items()]


def _first_quantities(documents: Documents) -> Rows:
    found: Counter[str] = Counter()
    for cart in (each["cart"] for each in documents if "cart" in each):
        quantity = cart["items"][0]["qty"]
        found[cart["currency"]] += quantity if quantity > 1 else 0
    return [(currency, total) for currency, total in found.items() if total]


def _best_products(documents: Documents) -> Rows:
    found: Counter[str] = Counter()
    for each in documents:
        for item in each.get("cart", {}).get("items", ()):
            found[item["sku"]] += item["qty"]
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:10]


QUESTIONS = {
    "filter": Question(
        "path",
        "count and sum of a path, filtered by another",
        {"plan": Column("user.plan", "string"), "x": Column("x", "bigint")},
        "SELECT count(*) AS n, sum(x) AS total FROM rows WHERE plan = 'pro'",
        lambda documents: [
            (len(found), sum(found))
            for found in [[each["x"] for each in documents if each["user"]["plan"] == "pro"]]
        ],
    ),
    "group": Question(
        "path",
        "count and maximum of a path, grouped by another",
        {"country": Column("geo.country", "string"), "lat": Column("geo.lat", "double")},
        "SELECT country, count(*) AS n, max(lat) AS north FROM rows GROUP BY country",
        _latitudes,
    ),
    "fetch": Question(
        "whole object",
        "the object `user` of 1 row in 80",
        {
            "visitor": Column("user", "object"),
            "status": Column("status", "bigint"),
            "action": Column("type", "string"),
        },
        "SELECT visitor FROM rows WHERE status = 500 AND action = 'buy'",
        lambda documents: [
            (each["user"],) for each in documents if each["status"] == 500 and each["type"] == "buy"
        ],
    ),
    "group by object": Question(
        "whole object",
        "count by the object `device`, which has an object inside",
        {"device": Column("device", "object")},
        "SELECT device, count(*) AS n FROM rows GROUP BY device",
        _devices,
    ),
    "first": Question(
        "array element",
        "count of a first element",
        {"tag": Column("tags[0]", "string")},
        "SELECT count(*) AS n FROM rows WHERE tag = 'sale'",
        lambda documents: [(sum(each.get("tags", ("",))[0] == "sale" for each in documents),)],
    ),
    "field of first": Question(
        "array element",
        "sum of a field of the first object of an array, grouped by a path",
        {"currency": Column("cart.currency", "string"), "qty": Column("cart.items[0].qty", "bigint")},
        "SELECT currency, sum(qty) AS total FROM rows WHERE qty > 1 GROUP BY currency",
        _first_quantities,
    ),
    "strings": Question(
        "whole array",
        "count by the elements of an array of strings",
        {"tag": Column("", "string")},
        "SELECT tag, count(*) AS n FROM rows GROUP BY tag",
        lambda documents: list(Counter(tag for each in documents for tag in each.get("tags", ())).items()),
        array="tags",
    ),
    "objects": Question(
        "whole array",
        "the ten products with the greatest sums, of an array of objects",
        {"sku": Column("sku", "string"), "qty": Column("qty", "bigint")},
        "SELECT sku, sum(qty) AS total FROM rows GROUP BY sku ORDER BY total DESC, sku LIMIT 10",
        _best_products,
        array="cart.items",
    ),
    "needle": Question(
        "needle",
        "a path and an object of the row with an id; ids are random, and each file has all of their range",
        {
            "id": Column("id", "string"),
            "ts": Column("ts", "string"),
            "visitor": Column("user", "object"),
        },
        "SELECT ts, visitor FROM rows WHERE id = '{needle}'",
        lambda documents: [(needle(documents)["ts"], needle(documents)["user"])],
    ),
}


def normal(rows: Rows) -> list[str]:
    """Return rows in one order, each as text: objects without NULLs, whether they are values or JSON text.

    A view shows a missing field as NULL, as SQL does.
    """
    return sorted(json.dumps([_normal(cell) for cell in row], sort_keys=True) for row in rows)


def _normal(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith("{"):
        cell = json.loads(cell)
    if isinstance(cell, Mapping):
        return {name: _normal(value) for name, value in cell.items() if value is not None}
    return round(float(cell), 6) if isinstance(cell, (int, float, Decimal)) else cell
