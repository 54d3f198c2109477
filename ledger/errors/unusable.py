"""Input that cannot be used; nothing was written."""

from ledger.errors.tree import BadInput


class DocumentInvalid(BadInput):
    """A document (agreement, bundle, trust file) breaks its schema; ``data`` names file, line and field."""

    code = "document_invalid"


class ReferenceUnresolved(DocumentInvalid):
    """A document refers to another one by name, and none, or more than one, has that name."""

    code = "reference_unresolved"


class NoCounterpart(DocumentInvalid):
    """A valid document of another format says something that no agreement can say; ``data`` names the field."""

    code = "no_counterpart"


class RequestLogUnusable(BadInput):
    """A request log cannot be read as a whole (empty, not NDJSON, cut off, a giant line); nothing was counted."""

    code = "request_log_unusable"


class TelemetryUnusable(BadInput):
    """No sample of a batch of telemetry can be used; nothing was written. ``data`` names field and reason."""

    code = "telemetry_unusable"


class ServiceUnknown(BadInput):
    """Telemetry is about a service that no agreement names; ``data["field"]`` says where the name stands."""

    code = "service_unknown"


class BodyTooLarge(BadInput):
    """A body is larger than its route takes, as it came or unpacked; ``data`` has the limit in bytes."""

    code = "body_too_large"


class BodyTooSlow(BadInput):
    """A body did not come whole within the time it had; ``data`` has that time in seconds."""

    code = "body_too_slow"


class MediaTypeUnsupported(BadInput):
    """A body is of a media type or in an encoding that its route does not read; ``data`` lists those it reads."""

    code = "media_type_unsupported"


class TargetUnavailable(BadInput):
    """An endpoint to scrape cannot be asked: not an http URL, not an answer, or one that is too large or too slow."""

    code = "target_unavailable"


class CalendarInvalid(BadInput):
    """A zone, period, window or date cannot be used."""

    code = "calendar_invalid"


class InstantInvalid(BadInput):
    """A text is not an RFC 3339 instant with a zone."""

    code = "instant_invalid"


class IntervalInvalid(BadInput):
    """An interval does not end after it starts."""

    code = "interval_invalid"


class MoneyInvalid(BadInput):
    """A decimal text, percentage, amount or currency cannot be used."""

    code = "money_invalid"


class NotCanonical(BadInput):
    """A value has no RFC 8785 form here (NaN, -0, float, integer beyond 2^53, duplicate key)."""

    code = "not_canonical"


class VerifierKeyInvalid(BadInput):
    """A note key (``name+hash+base64``) is malformed, of an unknown type, or its hash does not fit it."""

    code = "verifier_key_invalid"


class KeyFileUnusable(BadInput):
    """A private key file is missing, malformed, already there, or readable by others than its owner."""

    code = "key_file_unusable"


class TilePathInvalid(BadInput):
    """A path is not the one spelling C2SP tlog-tiles allows for a tile."""

    code = "tile_path_invalid"


class OutsideTree(BadInput):
    """A leaf index or tree size lies outside the tree a proof or root was asked for."""

    code = "outside_tree"


class EventInvalid(BadInput):
    """An event cannot be appended: unknown type or schema version, bad payload, name or instant; ``data`` names it."""

    code = "event_invalid"


class AttestationValueInvalid(BadInput):
    """A number, key or text of an attestation is outside its range; ``data`` names the field."""

    code = "attestation_value_invalid"


class ExportInvalid(BadInput):
    """An export file is cut off, malformed or contradicts itself; ``data["line"]`` names the place."""

    code = "export_invalid"


class CircuitUnknown(BadInput):
    """``circuits.json`` has no circuit of that name, or none large enough for the period."""

    code = "circuit_unknown"


class SettingInvalid(BadInput):
    """A setting from an argument or the environment cannot be used; ``data["setting"]`` names it."""

    code = "setting_invalid"


class DataDirectoryInvalid(BadInput):
    """The data directory is missing, or holds no ledger that this version can open."""

    code = "data_directory_invalid"


class DataDirectoryInUse(BadInput):
    """Another process works the data directory; ``data`` has its path and that process's id."""

    code = "data_directory_in_use"


class AddressTaken(BadInput):
    """Another process listens on the address already, or this one may not; ``data`` has host and port."""

    code = "address_taken"


class WitnessRequestInvalid(BadInput):
    """A request to a witness breaks the format of C2SP tlog-witness."""

    code = "witness_request_invalid"


class WebhookInvalid(BadInput):
    """A webhook endpoint cannot be what was asked for; ``data`` names the field."""

    code = "webhook_invalid"


class ExclusionInvalid(BadInput):
    """Time cannot be excluded as was asked: an unknown clause, no ticket, no such time; ``data`` names the field."""

    code = "exclusion_invalid"


class QueryInvalid(BadInput):
    """A parameter of a query is unknown, given twice or out of its range; ``data["parameter"]`` names it."""

    code = "query_invalid"


class CursorInvalid(QueryInvalid):
    """A page cursor was not made by this service, or was made for another list."""

    code = "cursor_invalid"


class ProvingKeyInvalid(BadInput):
    """A file that should hold a proving key of a ceremony, or what describes one, does not."""

    code = "proving_key_invalid"
