"""Answers as messages: parts of a channel's rows with their header, and how a client puts its own together.

A message of an answer has the attributes `answer_channel` (the physical channel), `period`, `set`, `part`, `rows`
(Arrow, as a stream) and in the first part `header`. A message with `sets` ends a channel's period. Messages on
channel -1 tell a client, `answer_client`, which channels to listen to from a period on. So a subscription to
`answer_channel IN (3, 7) OR answer_channel = -1 AND answer_client = 'ann'` has all that ann needs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from narrowcast.errors import InputError
from narrowcast.plans.queries.service.answers import Answer, Client, Header
from narrowcast.profiles.sql.syntax import Compare, In
from narrowcast.profiles.sql.text import to_text

CHANNEL, CLIENT = "answer_channel", "answer_client"
DIRECTORY = -1
TAGS = "_tags"
PART_BYTES = 48_000  # of rows in one message


def answer_messages(period: int, answer: Answer, *, tags: bool = False) -> Iterator[dict[str, Any]]:
    """One answer as messages: its header in the first, its rows in as many as they need.

    With `tags` each row has a column `_tags`, the places of those queries in the header that it answers, and no
    extractor is sent.
    """
    header = answer.header
    about = {CHANNEL: header.physical if header.physical is not None else header.channel, "period": period}
    step = max(1, answer.table.num_rows * PART_BYTES // max(1, answer.table.nbytes))
    starts = range(0, max(1, answer.table.num_rows), step)
    for part, start in enumerate(starts):
        message: dict[str, Any] = {**about, "set": header.channel, "part": part, "parts": len(starts)}
        if part == 0:
            message["header"] = _header_text(header, tags)
        yield {**message, "rows": _packed(answer.table.slice(start, step))}


def stamped(message: Mapping[str, Any], channel: int, key: Sequence[str]) -> dict[str, Any]:
    """The message with values of the key attributes that make each channel a flow of its own.

    >>> stamped({CHANNEL: 3}, 3, ["symbol"])
    {'answer_channel': 3, 'symbol': 'answers 3'}
    """
    return {**message, **dict.fromkeys(key, f"answers {channel}")}


def end_messages(period: int, sets: Mapping[int, int]) -> Iterator[dict[str, Any]]:
    """For each physical channel, that its period is complete and how many sets it had."""
    for channel, count in sorted(sets.items()):
        yield {CHANNEL: channel, "period": period, "sets": count}


def directory_messages(
    period: int, channels: Mapping[str, Sequence[int]], key: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """To each client, which channels to listen to from this period on, and by which key they are flows."""
    for client, heard in sorted(channels.items()):
        told = {CHANNEL: DIRECTORY, CLIENT: client, "period": period, "channels": json.dumps(list(heard))}
        yield {**told, "key": json.dumps(list(key))} if key else told


def answers_name(client: str) -> str:
    """What the subscription of a client is called where answers are flows: a network knows its site by it."""
    return f"{client} answers"


def _header_text(header: Header, tags: bool) -> str:
    if not tags:
        return header.to_json()
    named = [{"client": query.client, "query": query.query} for query in header.queries]
    return json.dumps({"channel": header.channel, "tagged": named})


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


@dataclass(frozen=True, slots=True)
class PeriodAnswers:
    """What a client's queries came to in one period; queries that were not due are not in it."""

    period: int
    answers: Mapping[str, pa.Table]


@dataclass
class _Period:
    """One period on its way: how many parts of each set came, those of one's own, and the channels that have ended."""

    came: Counter[tuple[int, int]] = field(default_factory=Counter)
    parts: dict[tuple[int, int], int] = field(default_factory=dict)
    headers: dict[tuple[int, int], str] = field(default_factory=dict)
    rows: dict[tuple[int, int], list[bytes]] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)


class AnswerReceiver:
    """Puts a client's answers together from messages, in the order of the log. Knows no network.

    `channels` is None until the directory has said which they are. A period is given out once every channel has
    ended it. A part that is missing when its channel ends is an InputError: messages were lost.
    """

    def __init__(self, client: str, channels: Iterable[int] | None = None) -> None:
        self.client = client
        self.channels: tuple[int, ...] | None = None if channels is None else tuple(sorted(channels))
        self.key: tuple[str, ...] = ()  # where channels are flows of a network
        self._periods: dict[int, _Period] = {}
        self._named = json.dumps(client)  # a header that does not hold this is for others, and not looked into
        self._since = -1  # the period that the channels of now hold from

    @property
    def profile(self) -> str:
        """What to subscribe to: the channels of now, and what is said to this client about them."""
        mine = f"{CHANNEL} = {DIRECTORY} AND {to_text(Compare(CLIENT, '=', self.client))}"
        if not self.channels:
            return mine
        wanted = f"{CHANNEL} IN ({', '.join(map(str, self.channels))}) OR {mine}"
        names = tuple(stamped({}, channel, ["flow"])["flow"] for channel in (*self.channels, DIRECTORY))
        return " AND ".join([*(to_text(In(name, names)) for name in self.key), f"({wanted})"]) if self.key else wanted

    def take(self, message: Mapping[str, Any]) -> tuple[PeriodAnswers, ...]:
        """One message; the periods that it completes."""
        channel, period = message.get(CHANNEL), message.get("period")
        if not isinstance(channel, int) or not isinstance(period, int):
            return ()
        if channel == DIRECTORY:
            if message.get(CLIENT) == self.client and period >= self._since:
                self.channels, self._since = tuple(json.loads(message["channels"])), period
                self.key = tuple(json.loads(message.get("key", "[]")))
                for old in [p for p in self._periods if p < period]:
                    del self._periods[old]  # it was not complete when the channels changed: it never will be
            return ()
        if self.channels is None or channel not in self.channels or period < self._since:
            return ()
        held = self._periods.setdefault(period, _Period())
        if "sets" in message:
            held.ended.add(channel)
            return self._complete(period, held, channel, message["sets"])
        at = channel, message["set"]
        if "header" in message:
            if at in held.parts:
                return ()  # a period that was sent before
            held.parts[at] = message["parts"]
            if self._named in message["header"]:
                held.headers[at] = message["header"]
        if message["part"] == held.came[at]:
            held.came[at] += 1
            if at in held.headers:
                held.rows.setdefault(at, []).append(message["rows"])
        return ()

    def _complete(self, period: int, held: _Period, channel: int, sets: int) -> tuple[PeriodAnswers, ...]:
        here = [at for at in held.parts if at[0] == channel]
        if len(here) < sets:
            raise InputError(f"period {period} of channel {channel} lacks {sets - len(here)} answers", name="period")
        if any(held.came[at] != held.parts[at] for at in here):
            raise InputError(f"period {period} of channel {channel} lacks a part of an answer", name="period")
        if not held.ended >= set(self.channels or ()):
            return ()
        del self._periods[period]
        for old in [p for p in self._periods if p < period]:
            del self._periods[old]
        return (PeriodAnswers(period, self._extracted(held)),)

    def _extracted(self, held: _Period) -> dict[str, pa.Table]:
        answers: dict[str, pa.Table] = {}
        extracting = Client(self.client)
        for at, text in sorted(held.headers.items()):
            read = json.loads(text)
            named = read.get("tagged") or read["extractors"]
            if all(each["client"] != self.client for each in named):
                continue
            whole = pa.concat_tables([pa.ipc.open_stream(rows).read_all() for rows in held.rows[at]])
            if "tagged" in read:
                answers |= _by_tags(whole, named, self.client)
            else:
                extracting.receive(Answer(_mine(text, self.client), whole))
        return answers | extracting.answers


def _mine(text: str, client: str) -> Header:
    """The header with this client's extractors alone: nobody parses what is for others."""
    read = json.loads(text)
    read["extractors"] = [each for each in read["extractors"] if each["client"] == client]
    return Header.from_json(json.dumps(read))


def _by_tags(table: pa.Table, named: Sequence[Mapping[str, str]], client: str) -> dict[str, pa.Table]:
    """The rows whose tags name a query, for each query of the client."""
    tags = table[TAGS].combine_chunks()
    rows = np.repeat(np.arange(len(tags)), tags.value_lengths().to_numpy())
    values, rest = tags.flatten().to_numpy(), table.drop_columns([TAGS])
    return {
        each["query"]: rest.take(rows[values == place]) for place, each in enumerate(named) if each["client"] == client
    }


async def receive_answers(connection: Any, client: str, *, after: int = -1) -> AsyncGenerator[PeriodAnswers, None]:
    """The answers of a client's queries from a running system, period by period, without an end.

    It begins with the oldest that the log still has, so that who was away misses nothing.

    Parameters
    ----------
    connection : what `async with narrowcast.connect(…)` gives
    client : the client's name in the queries table
    after : the last period that the client has already; those up to it are left out

    Returns
    -------
    AsyncGenerator : of PeriodAnswers; where the client's channels change, it goes on at that very message

    Raises
    ------
    InputError : the log lost messages of an answer
    """
    receiver, position = AnswerReceiver(client), None
    while True:
        name = answers_name(client) if receiver.key else None
        subscription = connection.subscribe(receiver.profile, name=name, position=position, from_start=position is None)
        try:
            async for batch in subscription:
                if batch.gap is not None:
                    raise InputError(f"answers were lost in the log ({batch.gap})", name="position")
                before = receiver.channels
                for at, message in zip(batch.places, batch, strict=True):
                    for found in receiver.take(message):
                        if found.period > after:
                            yield found
                    if receiver.channels != before:  # the rest comes again, with what the new channels carry
                        position = {**batch.position, batch.shard: at}
                        break
                if receiver.channels != before:
                    break
        finally:
            await subscription.close()
