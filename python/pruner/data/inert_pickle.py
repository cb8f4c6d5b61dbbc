"""Reads a pickle without running anything of it.

The bytes of a pickle are a program for a small stack machine. Python's own `pickle` imports each
function that the program names, and calls it. This module is another such machine: it makes numbers,
texts, lists, tuples and dicts, and an `Inert` in the place of each object of another class. It
imports nothing and calls nothing that a pickle names.
"""

import pickletools
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

NEW_OBJECT = ("tvm.runtime.object", "_new_object")  # TVM's function that makes an object of a class


class InertPickleError(ValueError):
    """A pickle that is damaged, or that asks for a name or an operation that is not allowed."""


class Name(NamedTuple):
    """A class or a function that a pickle names. The name is never looked up."""

    module: str
    name: str


class Inert:
    """An object of a class that was not imported."""

    def __init__(self, cls: Name, arguments: Tuple):
        self.cls = cls
        self.arguments = arguments  # arguments of the call that was not made
        self.state: Any = None  # value that would have restored the object


_MARK = object()


class _Machine:
    def __init__(self, allowed: Callable[[Name], bool]):
        self.allowed = allowed
        self.stack: List[Any] = []
        self.memo: Dict[int, Any] = {}

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise InertPickleError("the pickle takes a value that is not there")
        return self.stack.pop()

    def pop_to_mark(self) -> List[Any]:
        for at in range(len(self.stack) - 1, -1, -1):
            if self.stack[at] is _MARK:
                values = self.stack[at + 1 :]
                del self.stack[at:]
                return values
        raise InertPickleError("the pickle takes values that are not there")

    def top(self, kind: type) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise InertPickleError(f"the pickle changes a value that is no {kind.__name__}")
        return self.stack[-1]

    def name(self, module: Any, name: Any) -> Name:
        found = Name(str(module), str(name))
        if not self.allowed(found):
            raise InertPickleError(f"the pickle asks for {found.module}.{found.name}, which is refused")
        return found

    def make(self, cls: Any, arguments: Any) -> Inert:
        if not isinstance(cls, Name) or not isinstance(arguments, tuple):
            raise InertPickleError("the pickle calls what is no class")
        return Inert(cls, arguments)

    def reduce(self) -> Inert:
        arguments, function = self.pop(), self.pop()
        if function != NEW_OBJECT or not isinstance(arguments, tuple) or len(arguments) != 1:
            named = f" {function.module}.{function.name}" if isinstance(function, Name) else ""
            raise InertPickleError(f"the pickle calls the function{named}, which is refused")
        return self.make(arguments[0], ())

    def put_items(self, items: List[Any]) -> None:
        target = self.top(dict)
        for key, value in zip(items[::2], items[1::2]):
            if not isinstance(key, (str, int, bytes)):
                raise InertPickleError("the pickle has a dict whose key is no text or number")
            target[key] = value

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def remember(self, place: int) -> None:
        self.memo[place] = self.top(object)

    def recall(self, place: int) -> None:
        if place not in self.memo:
            raise InertPickleError("the pickle takes a value that is not there")
        self.push(self.memo[place])

    def push_last(self, count: int) -> None:
        values = [self.pop() for _ in range(count)]
        self.push(tuple(reversed(values)))

    def drop(self) -> None:
        if not self.stack:
            raise InertPickleError("the pickle takes a value that is not there")
        self.stack.pop()

    def drop_to_mark(self) -> None:
        self.pop_to_mark()

    def append(self, values: List[Any]) -> None:
        self.top(list).extend(values)

    def put_dict(self) -> None:
        items = self.pop_to_mark()
        self.push({})
        self.put_items(items)

    def put_item(self) -> None:
        value, key = self.pop(), self.pop()
        self.put_items([key, value])

    def push_global(self) -> None:
        name, module = self.pop(), self.pop()
        self.push(self.name(module, name))

    def new_object(self) -> None:
        arguments, cls = self.pop(), self.pop()
        self.push(self.make(cls, arguments))

    def build(self) -> None:
        state = self.pop()
        self.top(Inert).state = state


def _value(machine: _Machine, argument: Any) -> None:
    machine.push(argument)


# All operations that are not refused: what each does with the machine and its argument.
_ACTIONS: Dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda m, a: None,
    "FRAME": lambda m, a: None,
    "NONE": lambda m, a: m.push(None),
    "NEWTRUE": lambda m, a: m.push(True),
    "NEWFALSE": lambda m, a: m.push(False),
    **dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"), _value),
    **dict.fromkeys(("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING"), _value),
    **dict.fromkeys(("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), _value),
    **dict.fromkeys(("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"), _value),
    "MARK": lambda m, a: m.push(_MARK),
    "POP": lambda m, a: m.drop(),
    "POP_MARK": lambda m, a: m.drop_to_mark(),
    "DUP": lambda m, a: m.push(m.top(object)),
    "MEMOIZE": lambda m, a: m.remember(len(m.memo)),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _Machine.remember),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.recall),
    "EMPTY_LIST": lambda m, a: m.push([]),
    "LIST": lambda m, a: m.push(m.pop_to_mark()),
    "APPEND": lambda m, a: m.append([m.pop()]),
    "APPENDS": lambda m, a: m.append(m.pop_to_mark()),
    "EMPTY_TUPLE": lambda m, a: m.push(()),
    "TUPLE": lambda m, a: m.push(tuple(m.pop_to_mark())),
    "TUPLE1": lambda m, a: m.push_last(1),
    "TUPLE2": lambda m, a: m.push_last(2),
    "TUPLE3": lambda m, a: m.push_last(3),
    "EMPTY_DICT": lambda m, a: m.push({}),
    "DICT": lambda m, a: m.put_dict(),
    "SETITEM": lambda m, a: m.put_item(),
    "SETITEMS": lambda m, a: m.put_items(m.pop_to_mark()),
    "GLOBAL": lambda m, a: m.push(m.name(*a.split(" ", 1))),
    "STACK_GLOBAL": lambda m, a: m.push_global(),
    "REDUCE": lambda m, a: m.push(m.reduce()),
    "NEWOBJ": lambda m, a: m.new_object(),
    "BUILD": lambda m, a: m.build(),
}


def load(data: bytes, allowed: Callable[[Name], bool]) -> Any:
    """Returns the value of a pickle, with an `Inert` for each object.

    Raises InertPickleError if the pickle is damaged, if `allowed` refuses a name of the pickle, or
    if the pickle calls a function other than `NEW_OBJECT`.
    """
    machine = _Machine(allowed)
    position = 0
    try:
        for opcode, argument, at in pickletools.genops(data):
            position = at or 0
            if opcode.name == "STOP":
                break
            if opcode.name not in _ACTIONS:
                raise InertPickleError(f"the pickle has the operation {opcode.name}, which is refused")
            _ACTIONS[opcode.name](machine, argument)
        if len(machine.stack) != 1 or machine.stack[0] is _MARK:
            raise InertPickleError("the pickle is not one value")
    except InertPickleError as error:
        raise InertPickleError(f"byte {position}: {error}") from None
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        raise InertPickleError(f"after byte {position}: damaged or cut: {error}") from None
    return machine.stack[0]
