"""Errors of the sink: each has the row, or the rows of the send that failed."""

from __future__ import annotations

from twisted_mq.spark.errors import StoreReadError


class SinkError(StoreReadError):
    """Base class of all errors about rows that cannot be written."""

    def __reduce__(self) -> tuple[object, ...]:
        return SinkError, (str(self),)


class WrongColumn(SinkError):
    """Raised when rows do not have the columns that the sink needs."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"column {column!r}: {reason}")
        self.column = column


class WrongRow(SinkError):
    """Raised for a row that is not a valid message; `row` counts from 0 in its partition."""

    def __init__(self, row: int, partition: int, reason: str) -> None:
        super().__init__(f"row {row} of partition {partition}: {reason}")
        self.row = row
        self.partition = partition
        self.reason = reason


class RowsRefused(SinkError):
    """Raised when a broker refuses a send."""

    def __init__(self, first: int, last: int, partition: int, where: str, code: int, remark: str) -> None:
        rows = f"row {first}" if first == last else f"rows {first} to {last}"
        super().__init__(f"{rows} of partition {partition}: {where} refuses the send: code {code}, {remark}")
        self.first, self.last = first, last
        self.code = code


class BatchRefused(SinkError):
    """Raised when partitions of a stream's batch have rows that are not valid messages; nothing of these partitions is stored."""

    def __init__(self, wrong: list[str], partitions: int, kept: bool) -> None:
        again = "are not sent again" if kept else "are sent again, as no checkpointLocation keeps which they are"
        super().__init__(
            f"{'; '.join(wrong)}; nothing of {'this partition' if len(wrong) == 1 else 'these partitions'} is stored, "
            f"the batch's other {partitions - len(wrong)} partitions are stored and {again} when the query is started again; "
            "onBadRow=skip or onBadRow=quarantine continues without such rows"
        )
