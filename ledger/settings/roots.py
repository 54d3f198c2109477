"""When batch roots are published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.settings.reading import whole_number

DEFAULT_ROOTS_AFTER_S = 300
LONGEST_ROOTS_AFTER_S = 86_400
MOST_IN_A_BATCH = 1000


@dataclass(frozen=True, slots=True)
class RootSettings:
    """A batch is formed once ``most`` statements wait for one, or the first has waited for ``after_s``."""

    after_s: int = DEFAULT_ROOTS_AFTER_S
    most: int = MOST_IN_A_BATCH

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> RootSettings:
        """Raises ``SettingInvalid`` naming the setting that is wrong."""
        return cls(
            whole_number(environ, "SLA_LEDGER_ROOTS_AFTER_S", DEFAULT_ROOTS_AFTER_S, LONGEST_ROOTS_AFTER_S),
            whole_number(environ, "SLA_LEDGER_ROOTS_MOST", MOST_IN_A_BATCH, MOST_IN_A_BATCH),
        )
