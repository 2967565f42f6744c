"""As much of Ray as a `WorkerGroup` uses, in this process: workers that can be killed at once.

All that goes to a worker or comes from it is pickled as Ray does, and arrays come back read-only.
"""

from __future__ import annotations

import queue
import threading

import numpy as np
from ray import cloudpickle, exceptions


class Reference:
    """Reference that `put` or a request returns: bytes, or the error that `get` is to raise."""

    def __init__(self, data=None, error=None):
        self._come = threading.Event()
        self.data, self.error = data, error
        if data is not None or error is not None:
            self._come.set()

    def set(self, data=None, error=None):
        self.data, self.error = data, error
        self._come.set()

    def wait(self):
        assert self._come.wait(100), "a request has had no answer for 100 seconds"

    def value(self):
        self.wait()
        if self.error is not None:
            raise self.error
        found = cloudpickle.loads(self.data)
        if isinstance(found, np.ndarray):
            found.flags.writeable = False
        return found


class Actor:
    """A worker in a thread of this process, until it is killed; it does one request at a time."""

    def __init__(self, made):
        self.made, self.asked = made, []
        self._requests = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def __getattr__(self, method):
        return _Method(self, method)

    def put(self, method, arguments):
        answer = Reference()
        self.asked.append(answer)
        self._requests.put((method, arguments, answer))
        return answer

    def _work(self):
        while (made := self.made) is not None:
            request = self._requests.get()
            if request is None:
                return
            method, arguments, answer = request
            try:
                given = [one.value() if isinstance(one, Reference) else one for one in arguments]
                data, error = cloudpickle.dumps(getattr(made, method)(*given)), None
            except Exception as raised:
                data, error = None, exceptions.RayTaskError(method, str(raised), raised)
            if answer.error is None:
                answer.set(data, error)

    def end(self):
        """End at once; answers that were not taken are lost, and connections end."""
        made, self.made = self.made, None
        if made is None:
            return
        for answer in self.asked:
            answer.set(error=exceptions.ActorDiedError())
        made.close()
        self._requests.put(None)


class _Method:
    def __init__(self, actor, name):
        self._actor, self._name = actor, name

    def remote(self, *arguments):
        if self._actor.made is None:
            return Reference(error=exceptions.ActorDiedError())
        arguments = [
            one if isinstance(one, Reference) else cloudpickle.loads(cloudpickle.dumps(one))
            for one in arguments
        ]
        return self._actor.put(self._name, arguments)


class InProcessRay:
    """Stands in for the module."""

    exceptions = exceptions

    def __init__(self):
        self.actors = []

    def is_initialized(self):
        return True

    def put(self, value):
        return Reference(cloudpickle.dumps(value))

    def wait(self, references, timeout=None, fetch_local=True):
        for one in references:
            one.wait()

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
