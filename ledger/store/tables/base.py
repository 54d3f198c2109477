"""What every table shares: names of constraints, and a number of 64 bits."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Integer,
    MetaData,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

# SQLite's INTEGER has 64 bits, and only a column of that very name can be the row's own key.
BIGINT = BigInteger().with_variant(Integer(), "sqlite")
