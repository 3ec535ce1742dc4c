"""Changes of tables without a key that a connector sent twice after it was killed.

Such a repeat has the same position in the source's log and the same values. Rows without a
position, and rows of a snapshot (which share one), are never taken for repeats.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.ingest.rows.blobs import POSITION


def repeated_rows(
    rows: pa.Table, topics: npt.NDArray[np.int64], columns: list[str]
) -> npt.NDArray[np.bool_]:
    """Marks rows that repeat an earlier one: same topic, position and values; shape (rows,).

    `topics` numbers the topic of each row.
    """
    repeated = np.zeros(rows.num_rows, np.bool_)
    positions = rows.column(POSITION).to_numpy()
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    twin = np.zeros(len(order), np.bool_)
    twin[1:] = ordered[1:] == ordered[:-1]
    twin[:-1] |= twin[1:]
    suspects = np.sort(order[twin & (ordered >= 0)])
    if not len(suspects):
        return repeated
    # Few rows, if any: a Python value for each is affordable.
    values = rows.select(columns).take(suspects).to_pylist()
    seen: set[str] = set()
    for row, value in zip(suspects, values, strict=True):
        text = repr((int(topics[row]), int(positions[row]), value))
        repeated[row] = text in seen
        seen.add(text)
    return repeated
