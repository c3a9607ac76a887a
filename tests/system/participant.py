"""One participant of the Cyclone DDS test, in a host of its own: publishes flows, or takes partitions.

It speaks over its standard streams: `ready` when it is set up, then, told by a line on its input, what it did.
"""

# No postponed annotations here: Cyclone DDS reads the types of a message's fields from them.
import csv
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic
from cyclonedds.util import duration


@dataclass
class Message(IdlStruct, typename="Message"):  # type: ignore[call-arg]
    flow: str
    number: int


RELIABLE = Qos(Policy.Reliability.Reliable(duration(seconds=10)), Policy.History.KeepAll)


def rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def say(what: object) -> None:
    print(json.dumps(what), flush=True)


def publish(folder: Path, count: int) -> None:
    participant = DomainParticipant(0)
    topic = Topic(participant, "narrowcast", Message)
    sent = [(row["flow"], row["partition"]) for row in rows(folder / "flows.csv") + rows(folder / "unicast.csv")]
    expected: dict[str, int] = {}
    for row in rows(folder / "subscribers.csv"):
        expected[row["partition"]] = expected.get(row["partition"], 0) + 1
    for partition in {row["partition"] for row in rows(folder / "unicast.csv")}:
        expected[partition] = 1
    writers = {
        name: DataWriter(Publisher(participant, qos=Qos(Policy.Partition([name]))), topic, qos=RELIABLE)
        for name in dict.fromkeys(partition for _, partition in sent)
    }
    end = time.monotonic() + 20
    while any(len(writers[name].get_matched_subscriptions()) < n for name, n in expected.items()):
        if time.monotonic() > end:
            say({"error": "not everybody was discovered"})
            return
        time.sleep(0.05)
    say("ready")
    sys.stdin.readline()
    for number in range(count):
        for flow, partition in sent:
            writers[partition].write(Message(flow, number))
    say({"sent": count * len(sent)})
    sys.stdin.readline()


def take(folder: Path, subscriber: str, count: int) -> None:
    participant = DomainParticipant(0)
    topic = Topic(participant, "narrowcast", Message)
    mine = [row["partition"] for row in rows(folder / "subscribers.csv") if row["subscriber"] == subscriber]
    apart = [row for row in rows(folder / "unicast.csv") if row["subscriber"] == subscriber]
    flows = [row["flow"] for row in rows(folder / "flows.csv") if row["partition"] in mine]
    names = [*mine, *dict.fromkeys(row["partition"] for row in apart)]
    readers = [
        DataReader(Subscriber(participant, qos=Qos(Policy.Partition([name]))), topic, qos=RELIABLE) for name in names
    ]
    say("ready")
    sys.stdin.readline()
    got: dict[str, list[int]] = {}
    end, expected = time.monotonic() + 15, count * (len(flows) + len(apart))
    while sum(map(len, got.values())) < expected and time.monotonic() < end:
        for reader in readers:
            for message in reader.take(500):
                got.setdefault(message.flow, []).append(message.number)
        time.sleep(0.02)
    say({"flows": {flow: sorted(numbers) for flow, numbers in got.items()}})
    sys.stdin.readline()


if __name__ == "__main__":
    _, role, folder, who, count = sys.argv
    if role == "publish":
        publish(Path(folder), int(count))
    else:
        take(Path(folder), who, int(count))
