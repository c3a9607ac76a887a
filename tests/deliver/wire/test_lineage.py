"""Generations: numbers only grow, whatever becomes of a log; whoever stands at a lost entry is told so."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from narrowcast.deliver.transport import Entry, Stretch
from narrowcast.deliver.transport.generations import newest, numbered_stretch
from narrowcast.deliver.wire import Birth, Malformed, bare_of, decode_entry, encode_entry, generation_of, in_generation
from narrowcast.deliver.wire.entry import Born
from narrowcast.deliver.wire.lineage import KEPT, Lineage

# What happens to a log: entries are appended, the server starts, an older copy takes its place.
steps = st.lists(st.one_of(st.just("append"), st.just("start"), st.integers(0, 30)), max_size=60)


class _Log:
    """A log as everybody sees it, and every entry there ever was, under its number."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, bytes]] = []  # its name for ever, and its bytes
        self.starts = self.names = 0
        self.lineage = Lineage()

    def do(self, step: str | int) -> int | None:
        """The number of the entry that was appended, if one was."""
        if step == "start" or isinstance(step, int):
            self.starts += 1
            self.entries = self.entries[: step if isinstance(step, int) else None]
            self.lineage = newest(tuple(Entry(q, data) for q, (_, data) in enumerate(self.entries, 1))) or Lineage()
            return None
        server = self.starts.to_bytes(8, "big")
        if not self.lineage.has(server):
            birth = self.lineage.next_birth(self.starts + 1, server)
            self.put(encode_entry(birth))
            self.lineage = Lineage.of(birth, len(self.entries))
        self.put(b"entry")
        return self.lineage.number(len(self.entries))

    def put(self, data: bytes) -> None:
        self.names += 1
        self.entries.append((self.names, data))


@given(steps)
def test_numbers_only_grow_and_no_two_entries_ever_share_one(found: list[str | int]) -> None:
    log, numbers = _Log(), [0]
    for step in found:
        number = log.do(step)
        if number is not None:
            assert number > numbers[-1]
            numbers.append(number)


@given(steps, st.data())
def test_reading_on_from_any_number_gives_what_is_new_and_says_what_is_gone(
    found: list[str | int], data: st.DataObject
) -> None:
    log = _Log()
    at: dict[int, tuple[int, list[int]]] = {0: (0, [])}  # by number: the entry's name, and those up to it
    for step in found:
        number = log.do(step)
        if number is not None:
            at[number] = (log.entries[-1][0], [name for name, _ in log.entries])
    log.do("append")
    number = data.draw(st.sampled_from(sorted(at)))
    asked = log.lineage.reading(number, None)
    rest = tuple(Entry(q, each) for q, (_, each) in enumerate(log.entries, 1) if q > asked.after)
    stretch = numbered_stretch(Stretch(asked.after, len(log.entries), rest), log.lineage, number, asked)
    got = [log.entries[bare_of(entry.sequence) - 1][0] for entry in stretch.entries]
    names = [name for name, _ in log.entries]
    known = at[number][1]
    assert stretch.back is (known != names[: len(known)]), "a log that went back, or did not, is told otherwise"
    assert set(names) - set(known) <= set(got), "something new is left out"
    if not stretch.back:
        assert got == names[len(known) :]
    assert not set(got) & set(known), "something comes again"
    assert all(entry.sequence > number for entry in stretch.entries)


def test_a_birth_comes_back_as_it_went_and_others_are_refused() -> None:
    birth = Birth((Born(5, 1, b"12345678"), Born(9, 40, b"abcdefgh"), Born(12, 0, b"ABCDEFGH")))
    assert decode_entry(encode_entry(birth)) == birth
    assert isinstance(decode_entry(encode_entry(Birth(()))), Malformed)
    falling = Birth((birth.born[1], birth.born[0], birth.born[2]))
    assert decode_entry(encode_entry(falling)) == Malformed("order")


def test_of_many_generations_the_last_are_kept_and_the_clock_may_go_back() -> None:
    lineage = Lineage()
    for start in range(1, KEPT + 50):
        lineage = Lineage.of(lineage.next_birth(1000 - start, start.to_bytes(8, "big")), start)
    assert len(lineage.born) == KEPT
    assert [each.generation for each in lineage.born] == sorted({each.generation for each in lineage.born})


def test_a_position_from_before_there_were_generations_holds_up_to_the_first() -> None:
    lineage = Lineage((Born(7, 500, b""),))
    assert lineage.holds(499)
    assert not lineage.holds(500)
    assert lineage.reading(0, None)[:3] == (0, None, False)
    assert generation_of(lineage.reading(in_generation(0, 600), None).first) == 7
