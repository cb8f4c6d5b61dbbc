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
        self.arguments = arguments  # what the class would have been called with
        self.state: Any = None  # what the object would have been restored from


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
}
_EMPTY = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}
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

    def step(self, op: str, argument: Any) -> None:
        stack = self.stack
        if op in ("PROTO", "FRAME"):
            pass
        elif op in _CONSTANTS:
            stack.append(_CONSTANTS[op])
        elif op in _VALUES:
            stack.append(argument)
        elif op in _EMPTY:
            stack.append(_EMPTY[op]())
        elif op == "MARK":
            stack.append(_MARK)
        elif op == "POP":
            if not stack:
                raise InertPickleError("the pickle takes a value that is not there")
            stack.pop()
        elif op == "POP_MARK":
            self.pop_to_mark()
        elif op == "DUP":
            stack.append(self.top(object))
        elif op == "MEMOIZE":
            self.memo[len(self.memo)] = self.top(object)
        elif op in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.top(object)
        elif op in ("GET", "BINGET", "LONG_BINGET"):
            if argument not in self.memo:
                raise InertPickleError("the pickle takes a value that is not there")
            stack.append(self.memo[argument])
        elif op == "LIST":
            stack.append(self.pop_to_mark())
        elif op == "APPEND":
            value = self.pop()
            self.top(list).append(value)
        elif op == "APPENDS":
            values = self.pop_to_mark()
            self.top(list).extend(values)
        elif op == "TUPLE":
            stack.append(tuple(self.pop_to_mark()))
        elif op in ("TUPLE1", "TUPLE2", "TUPLE3"):
            values = [self.pop() for _ in range(int(op[-1]))]
            stack.append(tuple(reversed(values)))
        elif op == "DICT":
            values = self.pop_to_mark()
            stack.append({})
            self.put_items(values)
        elif op == "SETITEM":
            value, key = self.pop(), self.pop()
            self.put_items([key, value])
        elif op == "SETITEMS":
            self.put_items(self.pop_to_mark())
        elif op == "GLOBAL":
            stack.append(self.name(*argument.split(" ", 1)))
        elif op == "STACK_GLOBAL":
            name, module = self.pop(), self.pop()
            stack.append(self.name(module, name))
        elif op == "REDUCE":
            stack.append(self.reduce())
        elif op == "NEWOBJ":
            arguments, cls = self.pop(), self.pop()
            stack.append(self.make(cls, arguments))
        elif op == "BUILD":
            state = self.pop()
            self.top(Inert).state = state
        else:
            raise InertPickleError(f"the pickle has the operation {op}, which is refused")


def load(data: bytes, allowed: Callable[[Name], bool]) -> Any:
    """Returns the value of a pickle, with an `Inert` for each object.

    Raises InertPickleError if the pickle is damaged, if `allowed` refuses a name of the pickle, or
    if the pickle calls a function other than `NEW_OBJECT`.
    """
    machine = _Machine(allowed)
    position = 0
    try:
        for opcode, argument, position in pickletools.genops(data):
            if opcode.name == "STOP":
                break
            machine.step(opcode.name, argument)
        if len(machine.stack) != 1 or machine.stack[0] is _MARK:
            raise InertPickleError("the pickle is not one value")
    except InertPickleError as error:
        raise InertPickleError(f"byte {position}: {error}") from None
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        raise InertPickleError(f"after byte {position}: damaged or cut: {error}") from None
    return machine.stack[0]
