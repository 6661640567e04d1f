"""Constraints of form: what can be said of one program without running it.

Owns the rules on a program's spans, ranks, rounds, streams and scratch slots. Knows nothing of what
other ranks do (``simulate``) or of values (``values``).
"""

from __future__ import annotations

from rawcoll.errors import ScheduleError
from rawcoll.schedule.collectives import Collective, collective_of, units_after
from rawcoll.schedule.ops import (
    INPUT,
    OUTPUT,
    SCRATCH,
    Copy,
    Native,
    Recv,
    Reduce,
    Send,
    Span,
    Transfer,
    reads_of,
    stream_of,
    writes_of,
)
from rawcoll.schedule.program import Hold, Program, Schedule
from rawcoll.schedule.text import show_span

NATIVE_ROOTED = ("broadcast", "reduce", "gather", "scatter")


def error_at(program: Program, index: int, fact: str, *peers: int) -> ScheduleError:
    """The error for step ``index`` of a program; names its round where it has one."""
    spec, action = program.spec, program.steps[index].action
    round = getattr(action, "round", None)
    where = f"step {index}" if round is None else f"step {index} (round {round})"
    return ScheduleError(
        f"rank {spec.rank} {where}: {fact}",
        rank=spec.rank,
        collective=spec.collective,
        round=round,
        peers=peers,
    )


def check_frame(schedule: Schedule) -> Collective:
    """The programs belong together: one for each rank, of one collective, which is returned."""
    if not schedule.programs:
        raise ScheduleError("programs: found none, expected one for each rank")
    first = schedule.programs[0]
    collective = collective_of(first.spec.collective)
    for rank, program in enumerate(schedule.programs):
        found = (program.spec, program.nunits, program.in_place)
        expected = (_spec_of(first, rank, schedule.nranks), first.nunits, first.in_place)
        if found != expected:
            raise ScheduleError(f"rank {rank}: spec: found {found}, expected {expected}", rank=rank)
    _check_units(collective, first)
    return collective


def _spec_of(first: Program, rank: int, nranks: int) -> object:
    return type(first.spec)(first.spec.collective, rank, nranks, first.spec.root)


def _check_units(collective: Collective, first: Program) -> None:
    spec, nunits = first.spec, first.nunits
    if nunits < 1:
        raise ScheduleError(f"nunits: found {nunits}, expected at least 1")
    if collective.parts and nunits % spec.nranks:
        raise ScheduleError(
            f"nunits: {collective.name} has a part for each rank: found {nunits}, "
            f"expected a multiple of {spec.nranks}"
        )
    if not 0 <= spec.root < spec.nranks:
        raise ScheduleError(f"root: found {spec.root}, expected 0 to {spec.nranks - 1}")
    if collective.name == "all_to_all" and first.in_place:
        raise ScheduleError(
            "all_to_all: found an in-place program, expected INPUT and OUTPUT apart"
        )


def check_names(program: Program) -> None:
    """Ranks, buffers and units that a program names exist: without this it cannot be simulated."""
    for index, step in enumerate(program.steps):
        action = step.action
        for span in (*reads_of(action), *writes_of(action)):
            _check_span(program, index, span)
        match action:
            case Transfer():
                _check_peers(program, index, action)
            case Native():
                _check_native(program, index, action)
            case Copy() | Reduce():
                pass


def _check_span(program: Program, index: int, span: Span) -> None:
    if not 0 <= span.buffer < SCRATCH + len(program.scratch):
        raise error_at(
            program,
            index,
            f"{show_span(span)}: no such slot: found {len(program.scratch)} scratch slots",
        )
    if not 0 <= span.start < span.stop <= program.nunits:
        raise error_at(
            program,
            index,
            f"{show_span(span)}: bad range: found [{span.start}, {span.stop}), "
            f"expected units within [0, {program.nunits}), at least one",
        )


def _check_peers(program: Program, index: int, transfer: Transfer) -> None:
    messages: list[Send | Recv] = [*transfer.sends, *transfer.recvs]
    if not messages:
        raise error_at(program, index, "transfer: found no messages, expected at least one")
    for message in messages:
        if not 0 <= message.peer < program.spec.nranks or message.peer == program.spec.rank:
            raise error_at(
                program,
                index,
                f"peer: found {message.peer}, expected another rank below {program.spec.nranks}",
                message.peer,
            )


def _check_native(program: Program, index: int, native: Native) -> None:
    nranks, rank = program.spec.nranks, program.spec.rank
    collective_of(native.collective)
    known = all(0 <= member < nranks for member in native.ranks)
    if not known or len(set(native.ranks)) < len(native.ranks) or rank not in native.ranks:
        raise error_at(
            program,
            index,
            f"ranks: found {native.ranks}, expected different ranks below {nranks} with {rank}",
        )
    if native.collective in NATIVE_ROOTED and native.root not in native.ranks:
        raise error_at(program, index, f"root: found {native.root}, expected one of {native.ranks}")


def check_rules(program: Program, *, aliased: bool = False) -> None:
    """Everything else about the form of one program: rounds, streams, waits, operands, scratch."""
    _check_rounds(program)
    holds = list(program.scratch)
    for index, step in enumerate(program.steps):
        action = step.action
        _check_stream(program, index)
        _check_buffers(program, index)
        if isinstance(action, Transfer):
            _check_transfer(program, index, action, holds, aliased)
        elif not isinstance(action, Native):
            _check_operands(program, index, action)
        for span in reads_of(action):
            _check_hold(program, index, span, holds)
        for span in writes_of(action):
            if span.buffer >= SCRATCH:
                slot = span.buffer - SCRATCH
                holds[slot] = holds[slot].after_write(span.start, span.stop)


def _check_rounds(program: Program) -> None:
    last = None
    for index, step in enumerate(program.steps):
        if isinstance(step.action, Transfer | Native):
            if last is not None and step.action.round <= last:
                raise error_at(
                    program,
                    index,
                    f"round: found {step.action.round} after {last}, expected rounds to increase",
                )
            last = step.action.round


def _check_stream(program: Program, index: int) -> None:
    step = program.steps[index]
    expected = stream_of(step.action)
    if step.stream != expected:
        raise error_at(program, index, f"stream: found {step.stream}, expected {expected}")
    for wait in step.waits:
        if not 0 <= wait < index:
            raise error_at(program, index, f"waits: found step {wait}, expected an earlier step")
        if program.steps[wait].stream == step.stream:
            raise error_at(
                program, index, f"waits: found step {wait} of the same stream, expected the other"
            )


def _check_buffers(program: Program, index: int) -> None:
    action = program.steps[index].action
    start, stop = units_after(program.spec, program.nunits)
    for span in writes_of(action):
        if span.buffer == INPUT:
            raise error_at(program, index, f"writes {show_span(span)}: the input is never written")
        if span.buffer == OUTPUT and not start <= span.start < span.stop <= stop:
            raise error_at(
                program,
                index,
                f"writes {show_span(span)}: outside the result: "
                f"expected units within [{start}, {stop})",
            )
    for span in reads_of(action):
        if span.buffer == INPUT and program.in_place:
            raise error_at(
                program, index, f"reads {show_span(span)}: an in-place program has no input array"
            )


def _check_hold(program: Program, index: int, span: Span, holds: list[Hold]) -> None:
    if span.buffer < SCRATCH:
        return
    hold = holds[span.buffer - SCRATCH]
    if not hold.contains(span.start, span.stop):
        raise error_at(
            program,
            index,
            f"reads {show_span(span)}: outside what the slot holds: "
            f"found units [{hold.start}, {hold.stop})",
        )


def _check_operands(program: Program, index: int, action: Copy | Reduce) -> None:
    srcs, dst = reads_of(action), action.dst
    if isinstance(action, Reduce) and len(srcs) < 2:
        raise error_at(program, index, f"reduce: found {len(srcs)} operands, expected two or more")
    for src in srcs:
        if (src.start, src.stop) != (dst.start, dst.stop):
            raise error_at(
                program,
                index,
                f"operands: found {show_span(src)} into {show_span(dst)}, expected the same units",
            )


def _check_transfer(
    program: Program, index: int, transfer: Transfer, holds: list[Hold], aliased: bool
) -> None:
    """No receive may overlap another message of its transfer, nor move a slot that one uses."""
    uses = [_use(recv.span, holds, aliased, True) for recv in transfer.recvs]
    uses += [_use(send.span, holds, aliased, False) for send in transfer.sends]
    uses.sort(key=lambda use: use[:3])
    # In order of start, an overlap is with what reaches furthest so far: of all for a write, of
    # writes for a read.
    memory, furthest, furthest_write = -1, uses[0], uses[0]
    for use in uses:
        if use[0] != memory:
            memory, furthest, furthest_write = use[0], _none(use), _none(use)
        rival = furthest if use[3] else furthest_write
        if use[1] < rival[2]:
            raise error_at(
                program,
                index,
                f"messages of one transfer overlap: found {show_span(rival[4])} "
                f"and {show_span(use[4])}, at least one of them received",
            )
        furthest = max(furthest, use, key=lambda u: u[2])
        if use[3]:
            furthest_write = max(furthest_write, use, key=lambda u: u[2])


_Use = tuple[int, int, int, bool, Span]
"""Memory, first and last unit, whether it is written, and the span as the program has it."""


def _use(span: Span, holds: list[Hold], aliased: bool, written: bool) -> _Use:
    memory = OUTPUT if aliased and span.buffer == INPUT else span.buffer
    start, stop = span.start, span.stop
    moves = written and span.buffer >= SCRATCH
    if moves and not holds[span.buffer - SCRATCH].contains(start, stop):
        start, stop = 0, _WHOLE_SLOT
    return memory, start, stop, written, span


_WHOLE_SLOT = 1 << 62


def _none(use: _Use) -> _Use:
    return use[0], 0, 0, False, use[4]
