"""Where webhooks may go."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.errors import SettingInvalid


def webhooks_reach_private(environ: Mapping[str, str]) -> bool:
    """Whether webhooks may go to addresses of the own network and over http (``SLA_LEDGER_WEBHOOKS_PRIVATE=1``)."""
    text = environ.get("SLA_LEDGER_WEBHOOKS_PRIVATE", "") or "0"
    if text not in ("0", "1"):
        raise SettingInvalid(
            f"SLA_LEDGER_WEBHOOKS_PRIVATE={text[:20]!r} is neither 0 nor 1", setting="webhooks_private"
        )
    return text == "1"
