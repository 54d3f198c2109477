"""Where the files live that are data, not code: circuits, contract artefacts, examples, migrations.

In a clone they stand at the top of the repository; in an installed wheel they are package data in
``ledger/_data``. Nothing else may guess at these places.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

ResourceFolder: TypeAlias = Literal["circuits", "contracts", "examples", "migrations"]

_PACKAGE_DIR = Path(__file__).resolve().parent


def resource_dir(folder: ResourceFolder) -> Path:
    """The folder that holds these data files, as an absolute path; the folder may be read-only."""
    packaged = _PACKAGE_DIR / "_data"
    return (packaged if packaged.is_dir() else _PACKAGE_DIR.parent) / folder
