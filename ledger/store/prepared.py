"""Statements prepared once a connection, with parameters in PostgreSQL's binary form.

The driver's cursor finds out how to send each value, and a list of a thousand takes it longer than the server takes
to read them. An append knows its types: it packs its columns here and hands them over as they go on the wire
(send and receive functions of PostgreSQL's types; arrays as ``array_recv`` reads them).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg import errors
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from sqlalchemy import Connection

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

_BINARY = 1
_ARRAY_HEAD = struct.Struct(">iiIii")
int4 = struct.Struct(">i").pack
int8 = struct.Struct(">q").pack
_NULL = int4(-1)
_INT4_OID, _INT8_OID, _TEXT_OID, _BYTEA_OID = 23, 20, 25, 17


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement that a connection without transactions prepares under ``name`` when it first runs it."""

    name: bytes
    text: bytes


def run(connection: Connection, statement: Prepared, values: Sequence[bytes | None]) -> list[bytes | None] | None:
    """Run a statement in the connection's transaction; the first row of its result, None where it has none.

    Values and columns are in binary form. Raises the driver's errors.
    """
    fairy = connection.connection
    driver = cast("psycopg.Connection[Any]", fairy.driver_connection)
    if driver.autocommit:
        result = _run_prepared(driver, fairy.info.setdefault("prepared", set()), statement, values)
    else:
        result = _run_once(driver, statement, values)
    return [result.get_value(0, column) for column in range(result.nfields)] if result.ntuples else None


def _run_prepared(
    driver: psycopg.Connection[Any], names: set[bytes], statement: Prepared, values: Sequence[bytes | None]
) -> PGresult:
    formats = [_BINARY] * len(values)
    for _ in range(2):
        if statement.name not in names:
            _checked(driver, driver.pgconn.prepare(statement.name, statement.text))
            names.add(statement.name)
        # libpq waits for the answer itself and lets other threads run meanwhile; the driver's waiting, which Ctrl-C
        # can end, takes a tenth of the client's time.
        result = driver.pgconn.exec_prepared(statement.name, cast("Any", values), formats, _BINARY)
        try:
            return _checked(driver, result)
        except errors.InvalidSqlStatementName:
            # Somebody had the connection forget what it prepared (DISCARD ALL). Nothing was run, so try again.
            names.clear()
    raise psycopg.OperationalError("the connection forgets prepared statements at once")


def _run_once(driver: psycopg.Connection[Any], statement: Prepared, values: Sequence[bytes | None]) -> PGresult:
    """Unprepared: when the driver rolls back, it has the connection forget all that was prepared."""
    if driver.pgconn.transaction_status == TransactionStatus.IDLE:
        # The driver begins a transaction at the first statement that goes by way of a cursor.
        driver.execute("SELECT")
    return _checked(driver, driver.pgconn.exec_params(statement.text, values, None, [_BINARY] * len(values), _BINARY))


def _checked(driver: psycopg.Connection[Any], result: PGresult) -> PGresult:
    if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        return result
    if driver.pgconn.status == ConnStatus.BAD:
        raise psycopg.OperationalError(result.get_error_message())
    raise errors.error_from_result(result, encoding="utf-8")


def int4_array(values: Sequence[int]) -> bytes:
    return _array_head(_INT4_OID, len(values)) + _numbers("ii", 4, values)


def int8_array(values: Sequence[int]) -> bytes:
    return _array_head(_INT8_OID, len(values)) + _numbers("iq", 8, values)


def text_array(values: Sequence[str]) -> bytes:
    return _array(_TEXT_OID, [value.encode() for value in values])


def bytea_array(values: Sequence[bytes]) -> bytes:
    return _array(_BYTEA_OID, values)


def optional_bytea_array(values: Sequence[bytes | None]) -> bytes:
    """An array that may hold NULL."""
    parts = (_NULL if value is None else int4(len(value)) + value for value in values)
    return _array_head(_BYTEA_OID, len(values), nulls=True) + b"".join(parts)


def _array(oid: int, values: Sequence[bytes]) -> bytes:
    sizes = set(map(len, values))
    if len(sizes) == 1:
        # Ids, salts and hashes: what stands between two of them is always the same.
        size = int4(sizes.pop())
        return _array_head(oid, len(values)) + size + size.join(values)
    return _array_head(oid, len(values)) + _sized(values)


def _sized(values: Iterable[bytes]) -> bytes:
    return b"".join([part for value in values for part in (int4(len(value)), value)])


def _numbers(form: str, size: int, values: Sequence[int]) -> bytes:
    return struct.pack(">" + form * len(values), *chain.from_iterable(zip(repeat(size), values)))


def _array_head(oid: int, count: int, *, nulls: bool = False) -> bytes:
    """One dimension that counts from 1."""
    return _ARRAY_HEAD.pack(1, nulls, oid, count, 1)
