"""The one error tree of sla-ledger.

Every error carries a stable ``code`` (for machines), a message a person can act on, and the ``data``
that made it. Transports (CLI, REST, GraphQL) translate an error exactly once: the CLI by its
``exit_code``, the API by its class. Nothing in this tree knows HTTP.
"""

# Republished whole, so that an error is written in one place: these modules hold errors and nothing else.
from ledger.errors.evidence import *  # noqa: F403
from ledger.errors.outside import *  # noqa: F403
from ledger.errors.refusals import *  # noqa: F403
from ledger.errors.tree import *  # noqa: F403
from ledger.errors.unusable import *  # noqa: F403
