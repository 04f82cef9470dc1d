"""Bytes of a file, decompressed: the first step of every reader but Parquet's.

In: a path and its compression. Out: a buffered byte stream. Raises StreamError where the bytes end or break too early,
after the bytes before that have been read. Trade-off: compressed files are fed in small pieces, since of a damaged
piece of zstd nothing is got (of gzip all before the damage).
"""

import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import zstandard

PIECE = 4096
"""Compressed bytes given to a decompressor at once."""

_DISGUISES = {
    b"\x1f\x8b": "gzip data; name it *.gz, or decompress it first",
    b"\x28\xb5\x2f\xfd": "zstd data; name it *.zst, or decompress it first",
    b"PK\x03\x04": "a zip archive (or a spreadsheet); unpack it, or save it as CSV",
    b"PAR1": "Parquet; name it *.parquet",
    b"\xff\xfe": "UTF-16; convert it: iconv -f UTF-16 -t UTF-8",
    b"\xfe\xff": "UTF-16; convert it: iconv -f UTF-16 -t UTF-8",
}


class StreamError(Exception):
    """A file that cannot be read on; `reason` is one of `spt.corpus.REASONS`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def open_bytes(path: Path, compression: str) -> io.BufferedReader:
    """Return the decompressed bytes of a file; `compression` is "", ".gz" or ".zst".

    Raises StreamError, here or while reading.
    """
    file = path.open("rb")
    if compression == ".gz":
        chunks = _decompress(file, _new_gzip, "truncated_gzip")
    elif compression == ".zst":
        chunks = _decompress(file, _new_zstd, "truncated_zstd")
    else:
        return _undisguised(file)
    return _undisguised(io.BufferedReader(_Chunks(chunks, file)))


def _new_gzip() -> Any:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _new_zstd() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj()


def _decompress(file: IO[bytes], new: Callable[[], Any], truncated: str) -> Iterator[bytes]:
    """Yield the contents of all members (gzip) or frames (zstd), one after the other."""
    current, members = None, 0
    try:
        while data := file.read(PIECE):
            while data:
                if current is None:
                    # gzip files may be padded with zeros, on tapes and by some archivers.
                    data = data.lstrip(b"\0") if members else data
                    if not data:
                        break
                    current, members = new(), members + 1
                yield from _feed(current, data)
                if not current.eof:
                    break
                data, current = current.unused_data, None
    except (zlib.error, zstandard.ZstdError) as error:
        raise StreamError("damaged", f"does not decompress ({error}); fetch or make the file again") from None
    if current is not None or not members:
        raise StreamError(truncated, "the compressed data end too early; fetch or make the file again")


def _feed(current: Any, data: bytes) -> Iterator[bytes]:
    """Yield what one piece decompresses to; of a damaged gzip piece, first all that stands before the damage."""
    before = current.copy() if hasattr(current, "copy") else None
    try:
        yield current.decompress(data)
    except zlib.error:
        if before is None:
            raise
        # Byte by byte to the very byte that fails, which raises again.
        yield from (before.decompress(data[at : at + 1]) for at in range(len(data)))


class _Chunks(io.RawIOBase):
    """An iterator of bytes as a raw stream; closes `file` with itself."""

    def __init__(self, chunks: Iterator[bytes], file: IO[bytes]) -> None:
        self._chunks = chunks
        self._file = file
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def _undisguised(stream: io.BufferedReader) -> io.BufferedReader:
    """Return the stream, unless its first bytes show that it is no UTF-8 text."""
    head = stream.peek(4)
    for magic, remedy in _DISGUISES.items():
        if head.startswith(magic):
            stream.close()
            raise StreamError("unsupported", f"holds {remedy}")
    return stream
