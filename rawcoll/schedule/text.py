"""Programs as text that a person can read and ``parse`` gives back unchanged.

Owns the notation, and the digest that names a program in reports. One line a step::

    all_reduce, rank 1 of 2, root 0, 2 units, in place
    scratch0 holds [0:0]
    0: round 0: send output[1:2] to 0; recv scratch0[0:1] from 0
    1: reduce output[0:1] = scratch0[0:1] + output[0:1], last; waits 0

A stream is named only where it is not the one of the action. Programs of a schedule are set apart
by empty lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import sha256

from rawcoll.errors import ScheduleError
from rawcoll.schedule.ops import (
    INPUT,
    OUTPUT,
    SCRATCH,
    Action,
    Copy,
    Native,
    Recv,
    Reduce,
    Send,
    Span,
    Step,
    Transfer,
    stream_of,
)
from rawcoll.schedule.program import Hold, Program, Schedule, Spec

_DIGEST = 12
"""Hexadecimal digits of a digest: enough to tell all programs of a job apart."""


def dump(program: Program) -> str:
    """The program as text."""
    return "\n".join(_lines(program)) + "\n"


def dump_schedule(schedule: Schedule) -> str:
    """All programs as text."""
    return "\n".join(dump(program) for program in schedule.programs)


def digest(value: Program | Schedule) -> str:
    """A short hash of a program or schedule: equal for equal values, on every machine."""
    text = dump(value) if isinstance(value, Program) else dump_schedule(value)
    return sha256(text.encode()).hexdigest()[:_DIGEST]


def show_span(span: Span) -> str:
    """A span as text, such as ``output[3:5]`` or ``scratch0[3:5]``."""
    names = {INPUT: "input", OUTPUT: "output"}
    name = names.get(span.buffer, f"scratch{span.buffer - SCRATCH}")
    return f"{name}[{span.start}:{span.stop}]"


def _lines(program: Program) -> Iterator[str]:
    spec = program.spec
    form = "in place" if program.in_place else "out of place"
    yield (
        f"{spec.collective}, rank {spec.rank} of {spec.nranks}, root {spec.root}, "
        f"{program.nunits} units, {form}"
    )
    for slot, hold in enumerate(program.scratch):
        yield f"scratch{slot} holds [{hold.start}:{hold.stop}]"
    for index, step in enumerate(program.steps):
        yield f"{index}: {_show_action(step.action)}{_show_order(step)}"


def _show_order(step: Step) -> str:
    stream = "" if step.stream == stream_of(step.action) else f"; stream {step.stream}"
    waits = "; waits " + " ".join(map(str, step.waits)) if step.waits else ""
    return stream + waits


def _show_action(action: Action) -> str:
    match action:
        case Transfer():
            messages = [f"send {show_span(m.span)} to {m.peer}" for m in action.sends]
            messages += [f"recv {show_span(m.span)} from {m.peer}" for m in action.recvs]
            return f"round {action.round}: {'; '.join(messages)}"
        case Copy():
            return f"copy {show_span(action.dst)} = {show_span(action.src)}"
        case Reduce():
            srcs = " + ".join(map(show_span, action.srcs))
            return f"reduce {show_span(action.dst)} = {srcs}{_show_last(action.last)}"
        case Native():
            return (
                f"round {action.round}: native {action.collective} {_show_side(action.dst)} = "
                f"{_show_side(action.src)}, ranks {' '.join(map(str, action.ranks))}, "
                f"root {action.root}{_show_last(action.last)}"
            )


def _show_last(last: bool) -> str:
    return ", last" if last else ""


def _show_side(span: Span | None) -> str:
    return "nothing" if span is None else show_span(span)


def parse(text: str) -> Program:
    """The program that ``dump`` gave as text.

    Raises:
        ScheduleError: the text is none; the message has the line.
    """
    lines = text.strip("\n").split("\n")
    header = _match(_HEADER, lines[0])
    collective, rank, nranks, root, nunits, form = header.groups()
    holds = [line for line in lines[1:] if line.startswith("scratch")]
    return Program(
        Spec(collective, int(rank), int(nranks), int(root)),
        int(nunits),
        tuple(_parse_step(line) for line in lines[1 + len(holds) :]),
        tuple(Hold(*map(int, _match(_HOLD, line).groups())) for line in holds),
        in_place=form == "in",
    )


def parse_schedule(text: str) -> Schedule:
    """The schedule that ``dump_schedule`` gave as text; ScheduleError as for ``parse``."""
    return Schedule(tuple(parse(each) for each in text.strip("\n").split("\n\n") if each))


_INT = r"(-?\d+)"
_HEADER = re.compile(rf"(\w+), rank {_INT} of {_INT}, root {_INT}, {_INT} units, (in|out of) place")
_HOLD = re.compile(rf"scratch\d+ holds \[{_INT}:{_INT}\]")
_STEP = re.compile(rf"\d+: (.*?)(?:; stream {_INT})?(?:; waits ([-\d ]+))?")
_SPAN = re.compile(rf"(input|output|scratch{_INT})\[{_INT}:{_INT}\]")
_MESSAGE = re.compile(rf"(send|recv) (\S+) (?:to|from) {_INT}")
_TRANSFER = re.compile(rf"round {_INT}: (.*)")
_NATIVE = re.compile(
    rf"round {_INT}: native (\w+) (\S+) = (\S+), ranks ([-\d ]*), root {_INT}(, last)?"
)
_COPY = re.compile(r"copy (\S+) = (\S+)")
_REDUCE = re.compile(r"reduce (\S+) = (.*?)(, last)?")


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ScheduleError(f"text: found {text!r}, expected {pattern.pattern}")
    return found


def _parse_step(line: str) -> Step:
    text, stream, waits = _match(_STEP, line).groups()
    action = _parse_action(text)
    return Step(
        action,
        stream_of(action) if stream is None else int(stream),
        _parse_ints(waits or ""),
    )


def _parse_action(text: str) -> Action:
    parsers: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Action]], ...] = (
        (_NATIVE, _parse_native),
        (_TRANSFER, _parse_transfer),
        (_REDUCE, _parse_reduce),
        (_COPY, _parse_copy),
    )
    for pattern, parser in parsers:
        found = pattern.fullmatch(text)
        if found is not None:
            return parser(found)
    raise ScheduleError(f"text: found {text!r}, expected round, native, reduce or copy")


def _parse_native(found: re.Match[str]) -> Native:
    round, collective, dst, src, ranks, root, last = found.groups()
    return Native(
        collective,
        _parse_ints(ranks),
        _parse_side(src),
        _parse_side(dst),
        int(root),
        last is not None,
        int(round),
    )


def _parse_transfer(found: re.Match[str]) -> Transfer:
    messages = [_match(_MESSAGE, each) for each in found[2].split("; ") if each]
    return Transfer(
        tuple(Send(int(m[3]), _parse_span(m[2])) for m in messages if m[1] == "send"),
        tuple(Recv(int(m[3]), _parse_span(m[2])) for m in messages if m[1] == "recv"),
        int(found[1]),
    )


def _parse_reduce(found: re.Match[str]) -> Reduce:
    srcs = tuple(_parse_span(each) for each in found[2].split(" + ") if each)
    return Reduce(srcs, _parse_span(found[1]), found[3] is not None)


def _parse_copy(found: re.Match[str]) -> Copy:
    return Copy(_parse_span(found[2]), _parse_span(found[1]))


def _parse_side(text: str) -> Span | None:
    return None if text == "nothing" else _parse_span(text)


def _parse_span(text: str) -> Span:
    name, slot, start, stop = _match(_SPAN, text).groups()
    buffer = {"input": INPUT, "output": OUTPUT}.get(name)
    return Span(SCRATCH + int(slot) if buffer is None else buffer, int(start), int(stop))


def _parse_ints(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))
