"""What cannot be maintained incrementally, as a value with a code for machines and words for people."""

from __future__ import annotations

from penstock.vocabulary import Reason


class Unsupported(Exception):
    """Raised while planning when a construct has no incremental rule. It becomes the view's reason for FULL."""

    def __init__(self, code: Reason, construct: str):
        super().__init__(f"{construct} ({code})")
        self.code = code
        self.construct = construct


class NonDeterministic(Unsupported):
    """A function whose value changes by itself. Refused except under policy FULL."""

    def __init__(self, function: str):
        super().__init__(Reason.NON_DETERMINISTIC, f"the function {function}")
