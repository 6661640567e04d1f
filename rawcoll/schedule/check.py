"""The check: no schedule runs unproved.

Owns the order of the proofs and the comparison of results with what the collective promises. Proved
are, in this order: the form of each program; that transfers, strictly one after another on each
rank, never deadlock; that both ends of each message agree; that each rank ends with the right
values, from the same expression on every rank; and that the waits of each program leave no data
race.

Must not use ``hazards`` or ``builder``: what they derive is what is proved here.
"""

from __future__ import annotations

from dataclasses import dataclass

from rawcoll.errors import ScheduleError
from rawcoll.schedule.collectives import Collective, part_of, units_after
from rawcoll.schedule.form import check_frame, check_names, check_rules, error_at
from rawcoll.schedule.ops import INPUT, OUTPUT, Native, Transfer
from rawcoll.schedule.program import Program, Schedule, slot_sizes
from rawcoll.schedule.races import check_races
from rawcoll.schedule.simulate import Event, Join, Move, simulate
from rawcoll.schedule.text import show_span
from rawcoll.schedule.values import Values


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proved of a schedule, in numbers.

    Attributes:
        collective: what it does.
        nranks: how many ranks.
        nunits: units of the array.
        rounds: different rounds in which anything moves.
        transfers: most transfers (or native steps) of one rank.
        messages: messages of all ranks together.
        depth: most reductions nested in a result: its roundings in exact arithmetic.
        scratch: most units that one rank's scratch slots hold together.
    """

    collective: str
    nranks: int
    nunits: int
    rounds: int
    transfers: int
    messages: int
    depth: int
    scratch: int


def check(schedule: Schedule, aliased: bool = False) -> Proof:
    """Prove a schedule.

    Args:
        schedule: the programs of all ranks.
        aliased: whether INPUT and OUTPUT are one array.

    Raises:
        ScheduleError: it is wrong; the message says what and where.
    """
    collective = check_frame(schedule)
    if aliased and collective.name == "all_to_all":
        raise ScheduleError("all_to_all: found aliased, expected input and output apart")
    for program in schedule.programs:
        check_names(program)
    events = simulate(schedule)
    _check_matches(schedule, events)
    for program in schedule.programs:
        check_rules(program, aliased=aliased)
    values = Values(schedule, aliased=aliased)
    values.run(events)
    depth = _check_results(schedule, collective, values)
    for program in schedule.programs:
        check_races(program, aliased=aliased)
    return _proof(schedule, events, depth)


def _check_matches(schedule: Schedule, events: list[Event]) -> None:
    """Both ends of a message, and all of a native step, are of one round and of the same units."""
    for event in events:
        if isinstance(event, Join):
            _check_join(schedule, event)
        else:
            _check_rounds_agree(schedule, event)
            _check_units_agree(schedule, event)


def _check_join(schedule: Schedule, join: Join) -> None:
    ends = list(zip(join.ranks, join.steps, strict=True))
    rounds = [_round_of(schedule.programs[rank], index) for rank, index in ends]
    if len(set(rounds)) > 1:
        rank, index = ends[0]
        fact = f"native: found rounds {rounds} on ranks {join.ranks}, expected one"
        raise error_at(schedule.programs[rank], index, fact, *join.ranks)


def _check_rounds_agree(schedule: Schedule, move: Move) -> None:
    sender, receiver = schedule.programs[move.src], schedule.programs[move.dst]
    expected, found = _round_of(receiver, move.dst_step), _round_of(sender, move.src_step)
    if found != expected:
        fact = (
            f"sends {show_span(move.send.span)} to rank {move.dst}, "
            f"which receives it in round {expected}: expected the same round"
        )
        raise error_at(sender, move.src_step, fact, move.dst)


def _round_of(program: Program, index: int) -> int:
    action = program.steps[index].action
    assert isinstance(action, Transfer | Native)
    return action.round


def _check_units_agree(schedule: Schedule, move: Move) -> None:
    sender = schedule.programs[move.src]
    if sender.spec.collective == "all_to_all":
        expected = _exchanged(sender, move)
    else:
        expected = (move.send.span.start, move.send.span.stop)
    found = (move.recv.span.start, move.recv.span.stop)
    if found != expected:
        fact = (
            f"sends {show_span(move.send.span)} to rank {move.dst}, which receives it as "
            f"{show_span(move.recv.span)}: expected units [{expected[0]}, {expected[1]})"
        )
        raise error_at(sender, move.src_step, fact, move.dst)


def _exchanged(sender: Program, move: Move) -> tuple[int, int]:
    """Where units for the destination in the sender's INPUT are in the receiver's OUTPUT."""
    send, recv = move.send.span, move.recv.span
    if send.buffer != INPUT or recv.buffer != OUTPUT:
        fact = (
            f"sends {show_span(send)} to rank {move.dst}, which receives it as {show_span(recv)}: "
            f"expected input to output: parts differ in size for each pair, so that nothing "
            f"can be forwarded"
        )
        raise error_at(sender, move.src_step, fact, move.dst)
    start, stop = part_of(move.dst, sender.spec.nranks, sender.nunits)
    if not start <= send.start < send.stop <= stop:
        fact = (
            f"sends {show_span(send)} to rank {move.dst}: "
            f"expected units of that rank's part [{start}, {stop})"
        )
        raise error_at(sender, move.src_step, fact, move.dst)
    shift = part_of(move.src, sender.spec.nranks, sender.nunits)[0] - start
    return send.start + shift, send.stop + shift


def _check_results(schedule: Schedule, collective: Collective, values: Values) -> int:
    """Every rank ends with what the collective promises; returns the greatest depth."""
    holder: dict[int, int] = {}
    depth = 0
    for rank, program in enumerate(schedule.programs):
        for unit in range(*units_after(program.spec, program.nunits)):
            number = values.result(rank, unit)
            if not collective.reduces:
                _check_moved(values, program, unit, number)
                continue
            _check_complete(values, schedule, rank, unit, number)
            _check_same(values, rank, holder.setdefault(unit, rank), unit)
            depth = max(depth, values.symbols.depth(number))
    return depth


def _check_moved(values: Values, program: Program, unit: int, number: int) -> None:
    spec = program.spec
    owner, source = _origin(program, unit)
    if number != values.symbols.leaf(owner, source):
        raise ScheduleError(
            f"rank {spec.rank} unit {unit}: wrong at the end: found {values.symbols.name(number)}, "
            f"expected {values.symbols.name(values.symbols.leaf(owner, source))}",
            rank=spec.rank,
            collective=spec.collective,
        )


def _origin(program: Program, unit: int) -> tuple[int, int]:
    """The rank and unit that the result of a collective without reduction has in ``unit``."""
    spec = program.spec
    if spec.collective in ("broadcast", "scatter"):
        return spec.root, unit
    owner, offset = divmod(unit, program.nunits // spec.nranks)
    if spec.collective == "all_to_all":
        return owner, part_of(spec.rank, spec.nranks, program.nunits)[0] + offset
    return owner, unit


def _check_complete(values: Values, schedule: Schedule, rank: int, unit: int, number: int) -> None:
    missing = ~values.symbols.contributions(number) & ((1 << schedule.nranks) - 1)
    if missing:
        lacking = [r for r in range(schedule.nranks) if missing >> r & 1]
        raise ScheduleError(
            f"rank {rank} unit {unit}: incomplete at the end: found {values.symbols.show(number)}, "
            f"expected contributions of ranks {lacking} too",
            rank=rank,
            collective=schedule.programs[0].spec.collective,
            peers=lacking,
        )


def _check_same(values: Values, rank: int, other: int, unit: int) -> None:
    symbols = values.symbols
    mine, theirs = values.result(rank, unit), values.result(other, unit)
    if mine != theirs:
        hint = ""
        if symbols.is_reordered(mine, theirs):
            hint = "; operands must stand in rank order on every rank, not 'mine first'"
        raise ScheduleError(
            f"rank {rank} unit {unit}: another expression than on rank {other}: "
            f"found {symbols.show(mine)}, expected {symbols.show(theirs)}{hint}",
            rank=rank,
            peers=(other,),
        )


def _proof(schedule: Schedule, events: list[Event], depth: int) -> Proof:
    first = schedule.programs[0]
    wires = [
        [s.action.round for s in program.steps if isinstance(s.action, Transfer | Native)]
        for program in schedule.programs
    ]
    return Proof(
        collective=first.spec.collective,
        nranks=schedule.nranks,
        nunits=first.nunits,
        rounds=len(set().union(*wires)),
        transfers=max(map(len, wires)),
        messages=sum(isinstance(event, Move) for event in events),
        depth=depth,
        scratch=max(sum(slot_sizes(p, range(p.nunits + 1))) for p in schedule.programs),
    )
