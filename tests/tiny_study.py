"""A study that takes a second, and its table as text; several tests share them."""

import csv
import io
import sqlite3
from contextlib import closing, redirect_stdout

from covaria.studies.results import write_table
from covaria.studies.store import Store, readable, task_checksum

TINY = {
    "repeats": 10,
    "seed": 3,
    "splits": 2,
    "scenario": [{"name": "surrogate", "n_rows": 120, "rho": [0.0, 0.9]}],
    "learner": [{"name": "linear"}, {"name": "linear", "ridge": 1.0}],
    "methods": {"names": ["gcm", "loco"]},
}
TOML = """
repeats = 3
seed = 1
splits = 2
[[scenario]]
name = "linear"
n_rows = 60
[[learner]]
name = "linear"
[methods]
names = ["gcm", "loco", "lasso"]
"""


def exported(store):
    """Return the table as text, without the columns that hold seconds."""
    with readable(store) as opened, redirect_stdout(io.StringIO()) as out:
        write_table(opened)
    rows = list(csv.reader(io.StringIO(out.getvalue())))
    kept = [at for at, name in enumerate(rows[0]) if "seconds" not in name]
    return "\n".join(",".join(row[at] for at in kept) for row in rows)


def changed(store, *statements):
    """Change a store on purpose: by statements, and with checksums that fit again."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(*((statement,) if isinstance(statement, str) else statement))
        opened = Store(store, connection)
        opened._mark()
        for cell, repeat in opened.tasks():
            done = opened.done(cell, repeat)
            found = task_checksum((cell, repeat, done.failure, done.seconds), done.rows)
            connection.execute(
                "UPDATE tasks SET checksum = ? WHERE cell = ? AND repeat = ?",
                [found, cell, repeat],
            )
