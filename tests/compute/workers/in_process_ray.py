"""As much of Ray as a `WorkerGroup` uses, in this process: workers that can be killed at once.

All that goes to a worker or comes from it is pickled as Ray does, and arrays come back read-only.
"""

from __future__ import annotations

import numpy as np
from ray import cloudpickle, exceptions


class Reference:
    """Reference that `put` or a request returns: bytes, or the error that `get` is to raise."""

    def __init__(self, data=b"", error=None):
        self.data, self.error = data, error

    def value(self):
        if self.error is not None:
            raise self.error
        found = cloudpickle.loads(self.data)
        if isinstance(found, np.ndarray):
            found.flags.writeable = False
        return found


class Actor:
    """A worker in this process, until it is killed."""

    def __init__(self, made):
        self.made, self.asked = made, []

    def __getattr__(self, method):
        return _Method(self, method)

    def end(self):
        """End at once; answers that were not taken are lost."""
        self.made = None
        for answer in self.asked:
            answer.error = exceptions.ActorDiedError()


class _Method:
    def __init__(self, actor, name):
        self._actor, self._name = actor, name

    def remote(self, *arguments):
        made = self._actor.made
        if made is None:
            return Reference(error=exceptions.ActorDiedError())
        arguments = [
            one.value() if isinstance(one, Reference) else cloudpickle.loads(cloudpickle.dumps(one))
            for one in arguments
        ]
        try:
            answer = Reference(cloudpickle.dumps(getattr(made, self._name)(*arguments)))
        except Exception as error:
            answer = Reference(error=exceptions.RayTaskError(self._name, str(error), error))
        self._actor.asked.append(answer)
        return answer


class InProcessRay:
    """Stands in for the module."""

    exceptions = exceptions

    def __init__(self):
        self.actors = []

    def is_initialized(self):
        return True

    def put(self, value):
        return Reference(cloudpickle.dumps(value))

    def get(self, reference, timeout=None):
        return reference.value()

    def remote(self, kind):
        return _Maker(kind, self.actors)

    def kill(self, actor):
        actor.end()


class _Maker:
    def __init__(self, kind, actors):
        self._kind, self._actors = kind, actors

    def options(self, **_):
        return self

    def remote(self, *arguments):
        self._actors.append(Actor(self._kind(*arguments)))
        return self._actors[-1]
