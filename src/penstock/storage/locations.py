"""Where a warehouse or a table lies, as users write it: a path, or a ``file:`` URL. Remote places are refused.

A path is taken as it stands; in a URL, %20 is a space, as in those that Delta and Python's ``Path.as_uri`` give.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from penstock.errors import NotSupportedError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/))?(?P<path>/(?!/).*)", re.IGNORECASE | re.DOTALL)


def local_path(given: str | os.PathLike[str], what: str) -> str:
    """The absolute path of a place; ``what`` is said of one that cannot be used.

    >>> local_path("file:///data/my%20orders", "table 'orders'"), local_path("file:/data/orders/", "..")
    ('/data/my orders', '/data/orders')
    >>> local_path("/data/100%20percent", "table 'orders'")
    '/data/100%20percent'
    """
    text = os.fspath(given)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return os.path.abspath(os.path.expanduser(text))
    url = _FILE.fullmatch(text)
    if url is None:
        raise NotSupportedError(
            f"{what} cannot lie at {text!r}: remote places ({scheme[1]}:) are not supported yet. "
            "Use a directory of this machine, or one that is mounted here."
        )
    return os.path.abspath(unquote(url["path"]))
