"""The pages that show `<sla-dashboard>`, and the files they load: a page to frame, and the operator's own.

Neither page holds a figure or a token. What they show they fetch with a token that the framing page posts to them, so
that no token stands in an address, a log or a history. Their Content-Security-Policy names this server and nothing
else; nothing inline runs, and no text becomes markup (trusted types).
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Annotated, Final, Literal

from litestar import MediaType, Response
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from api.rest.routes import PUBLIC, reads
from ledger.errors import NotFound
from ledger.settings import EmbedSettings

_STATIC: Final = Path(__file__).parent / "static"
_MEDIA_TYPES: Final = {".js": "text/javascript", ".css": "text/css"}
FILES: Final = {
    path.name: (path.read_bytes(), _MEDIA_TYPES[path.suffix])
    for path in sorted(_STATIC.iterdir())
    if path.suffix in _MEDIA_TYPES
}
"""Read once: the files belong to this version, and their `ETag` is the hash of their bytes."""

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'; frame-ancestors "
)

# The files hold no figures, and browsers load modules of another origin only where it says so. What a page of another
# origin may read of the API is decided by its guest token (api.cors).
_LOADABLE: Final = {"access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin"}

_PAGE: Final = """<!doctype html>
<html lang="{lang}" data-theme="{theme}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="/embed/page.css">
<script type="module" src="/embed/{script}"></script>
</head>
<body class="{kind}">{body}</body>
</html>
"""

Theme = Annotated[
    Literal["light", "dark", "auto"], QueryParameter(description="Colours; auto follows the reader's system")
]
Locale = Annotated[
    str | None,
    QueryParameter(
        pattern="^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,7}$",
        max_length=60,
        description="BCP 47 tag of language and region, such as de-AT; the browser's where absent",
    ),
]


@reads(
    "/embed",
    summary="The dashboard of one agreement, to be framed",
    tag="embedding",
    scopes=PUBLIC,
    problems=(400,),
    media_type=MediaType.HTML,
)
def embed_page(
    embed: NamedDependency[EmbedSettings],
    sla_id: Annotated[str, QueryParameter(pattern="^0x[0-9a-f]{64}$", description="`0x` and 64 lowercase hex digits")],
    theme: Theme = "auto",
    locale: Locale = None,
) -> Response[str]:
    """A page without data. Origins of `SLA_LEDGER_EMBED_ANCESTORS` may frame it and post it a guest token."""
    ancestors = embed.ancestors(sla_id)
    attributes: dict[str, str | None] = {
        "src": "",
        "sla-id": sla_id,
        "theme": theme,
        "locale": locale,
        "data-ancestors": " ".join(ancestors),
    }
    if ancestors:
        # Somebody is there to give one, so nothing is asked without it.
        attributes["token-required"] = ""
    element = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value is not None)
    body = f"<sla-dashboard{element}></sla-dashboard>"
    page = _page("Service level", body, kind="framed", script="embed-page.js", theme=theme, lang=locale)
    return _answer(page, " ".join(ancestors) or "'none'")


@reads(
    "/dashboard",
    summary="The dashboards of all agreements",
    tag="embedding",
    scopes=PUBLIC,
    problems=(400,),
    media_type=MediaType.HTML,
)
def dashboard_page(theme: Theme = "auto", locale: Locale = None) -> Response[str]:
    """For the operator: a list of agreements, each with its dashboard. A page without data; it cannot be framed."""
    page = _page("sla-ledger", "", kind="operator", script="operator-page.js", theme=theme, lang=locale)
    return _answer(page, "'none'")


@reads(
    "/embed/{file_name:str}",
    summary="A module or stylesheet of the dashboard",
    tag="embedding",
    scopes=PUBLIC,
    problems=(400, 404),
    shape=str,
    media_type="text/javascript",
)
def embed_file(
    file_name: Annotated[str, PathParameter(description="Such as `sla-dashboard.js`")],
) -> Response[bytes]:
    """The `ETag` is the SHA-256 of the file."""
    if file_name not in FILES:
        raise NotFound("the dashboard has no such file; its entry is /embed/sla-dashboard.js", file=file_name[:80])
    content, media_type = FILES[file_name]
    return Response(content, media_type=media_type, headers=_LOADABLE)


def _page(title: str, body: str, *, kind: str, script: str, theme: str, lang: str | None) -> str:
    return _PAGE.format(
        title=escape(title), body=body, kind=kind, script=script, theme=escape(theme), lang=escape(lang or "en")
    )


def _answer(page: str, ancestors: str) -> Response[str]:
    return Response(page, media_type=MediaType.HTML, headers={"content-security-policy": _POLICY + ancestors})
