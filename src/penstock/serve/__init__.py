"""The HTTP server: routes that only translate between HTTP and a ``Database``. Who may do what is in ``roles``."""
