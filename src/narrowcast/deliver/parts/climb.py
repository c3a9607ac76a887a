"""How subscriptions climb a filtered tree, as one broker of it sees that (content-based multicast, §3.2).

Every broker of the tree keeps in the registry what it tells its parent: the profiles of its own subscriptions and of
those its children told it about, without those that another one covers (`up`, with a `version`). A parent takes that
into its table, tells its own parent what is new, and once everybody up to the root has it, says so (`sure`: the
version of each child that is known all the way up). The record of a gateway also lists its own subscriptions and
which of them are sure. Whoever starts again reads the records of its children and its own, so nothing that was ever
said is forgotten, and a table holds at least what the record says.

Three rules make that safe, in whatever order news and frames travel:

- What comes is in the table before it is in the record, and in the record before it is sure.
- What goes leaves the record first. A gateway then begins a new `turn`, and passes frames on only to edges that say
  they know it: who has not heard that a subscription is gone gets nothing, rather than too little.
- Only then is it taken out of the table, and only then is the parent told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from narrowcast.deliver.parts.wanted_below import WantedBelow
from narrowcast.deliver.transport import Overlay
from narrowcast.profiles.parsed import parsed

MOST_COMPARED = 16  # profiles that a new one is compared with: told once too often is no harm
MOST_COMPARISONS = 200  # in one go
MOST_OWN = MOST_UP = 96 << 10  # characters of profiles, so that a record fits

Profiles = frozenset[str] | None  # None: all messages, which is what one must assume of who has not spoken


@dataclass(slots=True)
class Own:
    """A subscription at this gateway. `since` tells one from another that had the name before."""

    edge: str
    profile: str
    since: int
    needs: int  # the version of ours that the parent must know
    sure: bool = False


class Climb:
    """What one broker knows of the subscriptions below it, in the tree of one epoch.

    `record` is what the registry should hold. `turn` is the one that edges must know. Nothing is written before
    `started`, when our own record of before is known, if there was one.

    >>> climb = Climb("root", Overlay("root", (("root", "a"),)))
    >>> climb.take_own(None)
    >>> climb.hear("a", {"version": 1, "up": ["price > 5"]})
    >>> while climb.parse(100): pass
    >>> climb.sure, climb.wanted.wants("a", {"price": 9}), climb.wanted.wants("a", {"price": 1})
    ({'a': 1}, True, False)
    """

    def __init__(self, broker: str, tree: Overlay) -> None:
        self.broker, self.tree = broker, tree
        self.parent = next((above for above, below in tree.links if below == broker), None)
        self.children = tree.children(broker)
        self.started = False
        self.turn = self.version = 0
        self.subs: dict[str, Own] = {}
        self.leaving: dict[str, tuple[str, str] | None] = {}  # and who has the name next
        self.sure: dict[str, int] = {}
        self.up: Profiles = None
        self.wanted = WantedBelow()
        self._above = 0  # the version of ours that is known all the way up
        self._recorded = 0  # the version in our record, as it is there
        self._heard: dict[str, tuple[int, Profiles]] = {}  # of each child, as the table has it
        self._needs: dict[str, tuple[int, int]] = {}  # a child's version, and the one of ours that holds it
        self._waiting: deque[tuple[str, int, Profiles]] = deque()  # from children, not in the table yet
        self._covered: dict[str, str] = {}  # a profile that is not told, and one that covers it
        self._changes = 0
        self._gone: tuple[str, ...] = ()  # names that the record being written leaves out

    # Our own record, and that of the parent.

    def take_own(self, record: Mapping[str, Any] | None) -> None:
        """What we wrote before we started, or what an earlier self of ours wrote after that; None: nothing."""
        late, self.started = self.started, True
        if record is None:
            self._tell()
            return
        self.version, self.turn = max(self.version, record["version"]), max(self.turn, record["turn"])
        self._changes, self._recorded = max(self._changes, record["changes"]), record["version"]
        told = None if record["up"] is None else frozenset(record["up"])
        self.up = told if self.up is None or told is None else self.up | told
        for name, (edge, profile, sure, since) in record["subs"].items():
            if name not in self.subs and name not in self.leaving:
                self.subs[name] = Own(edge, profile, since, self.version, bool(sure))
                self.wanted.add(edge, profile)
        if late:  # the number of a version must not stand for two of them
            self.version += 1
            for own in self.subs.values():
                own.needs = self.version
            self._needs = {child: (version, self.version) for child, (version, _) in self._needs.items()}
        self._tell()

    def record(self) -> dict[str, Any]:
        """What to write now. A subscription that goes is left out, but the parent is not told yet."""
        kept = {n: [s.edge, s.profile, int(s.sure), s.since] for n, s in self.subs.items() if n not in self.leaving}
        return {
            "version": self.version,
            "up": None if self.up is None else sorted(self.up),
            "turn": self.turn + bool(self.leaving),
            "subs": kept,
            "sure": dict(self.sure),
            "changes": self._changes,
        }

    def begin(self) -> dict[str, Any]:
        """The record, which is going to be written."""
        self._gone = tuple(self.leaving)
        return self.record()

    def written(self, record: Mapping[str, Any]) -> None:
        """That record is there: edges that do not know its turn get nothing from now on, and who left may go."""
        self.turn, self._recorded = max(self.turn, record["turn"]), record["version"]
        for name in self._gone:
            if name in self.leaving:
                gone = self.subs.pop(name)
                self._forget(gone.edge, gone.profile)
                after = self.leaving.pop(name)
                if after is not None:
                    self._add(name, *after)
        self._gone = ()
        self._tell()

    def hear_above(self, record: Mapping[str, Any] | None) -> None:
        """What the parent says is known all the way up."""
        if record is not None:
            self._above = max(self._above, record["sure"].get(self.broker, 0))
            self._settle()

    def _known_above(self, version: int) -> bool:
        """Also our own record must have it: an earlier self of ours may have given the number to something else."""
        return self.parent is None or min(self._above, self._recorded) >= version

    def _settle(self) -> None:
        """Whatever the parent now knows is sure."""
        for child, (version, needs) in list(self._needs.items()):
            if self._known_above(needs):
                self.sure[child] = version
                del self._needs[child]
        for own in self.subs.values():
            own.sure = own.sure or self._known_above(own.needs)

    # Subscriptions at this gateway.

    def note(self, name: str, edge: str | None, profile: str = "") -> None:
        """A subscription is at an edge of ours, or at none of ours (`edge` None)."""
        have, next_ = self.subs.get(name), None if edge is None else (edge, profile)
        if have is None:
            if next_ is not None:
                self._add(name, *next_)
                self._tell()
        elif name in self.leaving or (have.edge, have.profile) != next_:
            self.leaving[name] = next_

    def _add(self, name: str, edge: str, profile: str) -> None:
        if sum(len(own.profile) for own in self.subs.values()) + len(profile) > MOST_OWN:
            return  # it stays with the log
        self._changes += 1
        self.subs[name] = Own(edge, profile, self._changes, self.version + 1)
        self.wanted.add(edge, profile)

    def _forget(self, edge: str, profile: str) -> None:
        if not any(own.edge == edge and own.profile == profile for own in self.subs.values()):
            self.wanted.remove(edge, profile)

    # What children say.

    def hear(self, child: str, record: Mapping[str, Any] | None) -> None:
        """The record of a child, to be taken into the table as soon as its profiles are parsed."""
        up = None if record is None or record["up"] is None else frozenset(record["up"])
        version = 0 if record is None else record["version"]
        self._waiting = deque(each for each in self._waiting if each[0] != child)
        if self._heard.get(child) != (version, up):
            self._waiting.append((child, version, up))

    def parse(self, budget: int) -> int:
        """Go on with what children said; how many characters were parsed, 0 if there is nothing to do."""
        if not self.is_busy:
            return 0
        child, version, up = self._waiting[0]
        spent = 1
        for profile in up or ():
            if spent >= budget:
                return spent
            spent += self.wanted.learn(profile)
        self._waiting.popleft()
        self._heard[child] = (version, up)
        self.wanted.put(child, up)
        self._tell()
        self._needs[child] = (version, self.version)
        self._settle()
        return spent

    @property
    def is_busy(self) -> bool:
        """Whether something waits to be parsed. Not before we know what we said before: a version means one thing."""
        return self.started and bool(self._waiting)

    @property
    def heard(self) -> bool:
        """Whether every child has said what it wants."""
        return all(child in self._heard for child in self.children)

    @property
    def knows_all(self) -> bool:
        """Whether nobody below may want what is not in the table."""
        return self.started and all(self._heard.get(child, (0, None))[1] is not None for child in self.children)

    # What the parent is told.

    def _tell(self) -> None:
        """Work out what to tell: what was told and is still wanted, and what none of that covers."""
        told = self._uncovered()
        if told is not None and sum(map(len, told)) > MOST_UP:
            told = None
        if told != self.up or not self.version:
            self.up = told
            self.version += 1
        for own in self.subs.values():
            if not own.sure:
                own.needs = min(own.needs, self.version)
        self._settle()

    def _uncovered(self) -> Profiles:
        mine = {own.profile for own in self.subs.values()}
        if not self.heard:  # who has not spoken since we started may want what we said before
            return None if self.up is None else self.up | mine
        if any(up is None for _, up in self._heard.values()):
            return None
        all_ = mine.union(*(up for _, up in self._heard.values() if up is not None))
        kept = {profile for profile in self.up or () if profile in all_}
        self._covered = {p: by for p, by in self._covered.items() if p in all_ and by in kept}
        rest = sorted((p for p in all_ if p not in kept and p not in self._covered), key=lambda p: (len(p), p))
        wide = sorted(kept, key=len)[:MOST_COMPARED]
        left = MOST_COMPARISONS
        for profile in rest:
            found = next((by for by in wide[:left] if parsed(by).covers(parsed(profile))), None)
            left = max(0, left - len(wide))
            if found is None:
                kept.add(profile)
                if len(wide) < MOST_COMPARED:
                    wide.append(profile)
            else:
                self._covered[profile] = found
        return frozenset(kept)
