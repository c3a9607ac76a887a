"""What happens in one run, drawn from its seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Schedule:
    """A small system and what befalls it. Rates are per frame and receiver, numbers per run."""

    seed: int
    shards: int = 1
    sources: int = 1  # per shard
    seconds: float = 4.0
    batches: int = 40
    subscriptions: int = 4
    loss: float = 0.0
    repeat: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    engine_loss: float = 0.0  # requests to log and registry that get no answer
    crashes: int = 0
    pauses: int = 0
    partitions: int = 0
    outages: int = 0  # times when log and registry are down
    truncations: int = 0  # times when the log drops old entries
    churn: int = 0
    filter_moves: int = 0
    sealed: bool = True
    attack: float = 0.0  # frames forged, replayed, damaged or of another system, for each that is sent
    restores: int = 0  # times when an older copy takes the log's place
    offers: int = 0  # other plans, which are taken back if somebody does not prepare
    slow: bool = False  # one subscriber takes its time, and may be told of gaps
    third_gateway: str | None = "broker-0"  # of an edge that may stand outside the overlay
    frame_messages: int = 64
    frame_bytes: int = 1200
    relays: tuple[str, ...] = ()  # the gateways of sites, each with a relay; twice: with another that stands by
    relay_crashes: int = 0
    columns: float = 0.0  # of what is published, as columns
    full_disks: int = 0  # times when the log takes nothing
    spy: bool = False  # one subscriber has an account, and may see some of what there is
    revoked: bool = False  # which is revoked
    late_news: float = 0.0  # of what the registry tells, up to 0.4 s late: somebody acts on what is over
    returns: int = 0  # subscribers that leave, and come back at once under the same name with the same profile

    @classmethod
    def from_seed(cls, seed: int) -> Schedule:
        """The schedule of a seed: every fault is absent in some runs and heavy in others.

        >>> Schedule.from_seed(3) == Schedule.from_seed(3)
        True
        """
        rng = Random(seed)

        def some(*values: float) -> float:
            return rng.choice((0.0, *values))

        return cls(
            seed=seed,
            shards=rng.choice((1, 1, 2)),
            sources=rng.choice((1, 1, 1, 2)),
            batches=rng.randrange(25, 50),
            subscriptions=rng.randrange(3, 6),
            loss=some(0.1, 0.2, 0.3),
            repeat=some(0.1, 0.3),
            reorder=some(0.1, 0.3),
            corrupt=some(0.1),
            engine_loss=some(0.05, 0.15),
            crashes=rng.randrange(7),
            pauses=rng.randrange(4),
            partitions=rng.randrange(4),
            outages=rng.choice((0, 0, 1)),
            truncations=rng.choice((0, 0, 0, 0, 0, 0, 0, 1)),
            churn=rng.randrange(6),
            filter_moves=rng.randrange(4),
            slow=rng.random() < 0.15,
            third_gateway=rng.choice(("broker-0", "broker-1", None)),
            frame_messages=rng.choice((1, 2, 8, 64)),
            frame_bytes=rng.choice((120, 200, 1200)),
            offers=rng.randrange(4),
            sealed=rng.random() < 0.8,
            attack=some(0.2, 0.6),
            restores=rng.choice((0, 0, 0, 0, 1, 2)),
            relays=rng.choice(((), (), ("broker-1",), ("broker-1", "broker-2"), ("broker-1", "broker-1", "broker-0"))),
            relay_crashes=rng.randrange(4),
            columns=rng.choice((0.0, 0.5, 0.5, 1.0)),
            full_disks=rng.choice((0, 0, 1, 2)),
            spy=(spy := rng.random() < 0.4),
            revoked=spy and rng.random() < 0.7,
        )

    @property
    def asked(self) -> set[str]:
        """The faults that must have happened for the run to count."""
        wanted = {
            "loss": self.loss,
            "repeat": self.repeat,
            "reorder": self.reorder,
            "corrupt": self.corrupt,
            "engine loss": self.engine_loss,
            "crash": self.crashes,
            "pause": self.pauses,
            "partition": self.partitions,
            "outage": self.outages,
            "truncation": self.truncations,
            "churn": self.churn,
            "restore": self.restores,
            "attack": self.attack,
            "columns": self.columns,
            "full disk": self.full_disks,
            "revocation": self.revoked,
            "late news": self.late_news,
            "return": self.returns,
        }
        return {"epoch", *(name for name, amount in wanted.items() if amount)}
