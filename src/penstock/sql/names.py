"""What names mean by how they look."""

from __future__ import annotations

OWN = "penstock."
"""What the names of tables begin with that tell of Penstock itself: ``penstock.views``, ``penstock.history``, .."""
