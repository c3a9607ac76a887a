"""Every error narrowcast raises on purpose. The class tells whose turn it is.

    NarrowcastError
    ├── InputError            yours to fix: what was given, where, what is allowed, a hint
    │   └── ProfileError      a profile's text, with the place in it
    ├── PlanError             no plan came out
    │   ├── InfeasibleError   the budget that binds and the smallest that would do
    │   └── UnsupportedError  what was asked for does not exist, and what would work
    └── TransportError        the network said no: group, endpoint, limit

Bad rows of a table are not exceptions: they land in quarantine. A search that stopped early is a
result with its bound and gap, not an error.
"""

from __future__ import annotations


class NarrowcastError(Exception):
    """The root of the tree. Its text is one line that a person can act on."""


class InputError(NarrowcastError):
    """Something you gave cannot be used.

    `name` says what it is, `got` what was found, `allowed` what would do, `hint` how to fix it.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str | None = None,
        allowed: object = None,
        got: object = None,
        hint: str | None = None,
    ) -> None:
        self.name, self.allowed, self.got, self.hint = name, allowed, got, hint
        self.message = message
        super().__init__(f"{message} ({hint})" if hint else message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


class ProfileError(InputError):
    """A profile's text cannot be used. `position` is the 0-based place in `text`."""

    def __init__(self, message: str, *, text: str = "", position: int | None = None, hint: str | None = None):
        super().__init__(message, name="profile", got=text, hint=hint)
        self.text, self.position = text, position

    def pointer(self) -> str:
        """The text with a caret under the place, for a terminal."""
        if self.position is None:
            return self.text
        start = max(0, self.position - 50)
        line = self.text[start : self.position + 30].replace("\n", " ").replace("\t", " ")
        return f"{line}\n{' ' * (self.position - start)}^"


class PlanError(NarrowcastError):
    """No plan came out."""


class InfeasibleError(PlanError):
    """No plan keeps this budget. `smallest` is the least value of `budget` that would do, if known."""

    def __init__(self, message: str, *, budget: str, smallest: float | None = None) -> None:
        self.budget, self.smallest = budget, smallest
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


class UnsupportedError(PlanError):
    """What was asked for is not there. `works` names what would work."""

    def __init__(self, message: str, *, works: tuple[str, ...] = ()) -> None:
        self.works = works
        super().__init__(message)


class TransportError(NarrowcastError):
    """The network refused: which group or endpoint, and which limit."""

    def __init__(
        self, message: str, *, group: str | None = None, endpoint: str | None = None, limit: object = None
    ) -> None:
        self.group, self.endpoint, self.limit = group, endpoint, limit
        super().__init__(message)


def _rebuild(cls: type[NarrowcastError], args: tuple[object, ...], state: dict[str, object]) -> NarrowcastError:
    """Unpickle without calling the keyword-only constructor: errors travel back from Spark's workers."""
    error = cls.__new__(cls)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error
