from collections.abc import Sequence

def read_columns(
    data: object, places: tuple[int, ...], /
) -> tuple[Sequence[int], Sequence[bytes], Sequence[bytes], bool] | None: ...
def encode_records(
    pattern: bytes,
    flags: tuple[int, ...],
    crcs: tuple[int, ...],
    bodies: tuple[bytes, ...],
    properties: tuple[bytes, ...],
    queue_offset: int,
    physical_offset: int,
    places: tuple[int, ...],
    /,
) -> tuple[bytes, list[int]] | None: ...
