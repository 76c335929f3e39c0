"""Errors of the sink: each names the row, or the rows of the one send that failed."""

from __future__ import annotations

from twisted_mq.spark.errors import StoreReadError


class SinkError(StoreReadError):
    """Root of all errors about rows that cannot be written."""

    def __reduce__(self) -> tuple[object, ...]:
        return SinkError, (str(self),)


class WrongColumn(SinkError):
    """The rows have not the columns that the sink takes."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"column {column!r}: {reason}")
        self.column = column


class WrongRow(SinkError):
    """A row that is no message; `row` counts from 0 in its partition."""

    def __init__(self, row: int, partition: int, reason: str) -> None:
        super().__init__(f"row {row} of partition {partition}: {reason}")
        self.row = row
        self.partition = partition
        self.reason = reason


class RowsRefused(SinkError):
    """A broker will not take a send."""

    def __init__(self, first: int, last: int, partition: int, where: str, code: int, remark: str) -> None:
        rows = f"row {first}" if first == last else f"rows {first} to {last}"
        super().__init__(f"{rows} of partition {partition}: {where} refuses the send: code {code}, {remark}")
        self.first, self.last = first, last
        self.code = code


class BatchRefused(SinkError):
    """Some partitions of a stream's batch have rows that are no messages; nothing of these partitions is stored."""

    def __init__(self, wrong: list[str], partitions: int, kept: bool) -> None:
        again = "are not sent again" if kept else "are sent again, as no checkpointLocation keeps which they are"
        super().__init__(
            f"{'; '.join(wrong)}; nothing of {'this partition' if len(wrong) == 1 else 'these partitions'} is stored, "
            f"the batch's other {partitions - len(wrong)} partitions are stored and {again} when the query is started again; "
            "onBadRow=skip or onBadRow=quarantine goes on without such rows"
        )
