"""A chain: a state, the moves that change it, and what follows from the declaration of both.

A model declares the fields of its `State`, writes one class for each `Move`, and lists the moves in
the order of a sweep. Snapshots of all that the next sweep depends on, their checks, counts of what
was accepted, a single move for the tests and the time that moves take come from here.
"""

from libc.math cimport NAN

from time import perf_counter

import numpy as np

from skbnp.numerics cimport rng as draws

from skbnp.mcmc import fields
from skbnp.numerics.states import checked_array, entry, put_bit_generator


cdef class State:
    """What a chain is at: data, labels, parameters, and what is kept of them for speed.

    ``FIELDS`` are attributes of the state (`fields.Field`) that, with the data and the prior,
    determine all others. A model adds its attributes, the invariant that holds between moves, and
    the small steps that moves are made of, in mirrored pairs that keep the invariant.
    """

    FIELDS = ()

    def get_state(self):
        """Everything in it that the next sweep depends on, bit for bit, as a dict of copies."""
        return fields.read(self, self.FIELDS)

    def set_state(self, state):
        """Take what ``get_state`` returned; a ValueError, and no change, if it cannot be that."""
        values = fields.checked(self, self.FIELDS, state)
        self.check(state, values)
        fields.write(self, self.FIELDS, values)
        self.refresh(state)

    def check(self, state, values):
        """Raise a ValueError where fields that are right one by one do not fit together."""

    def refresh(self, state):
        """Make what follows from the fields, after they have been written."""

    def adapt(self):
        """After a warm-up sweep: forget what belongs to warm-up alone."""

    cpdef double log_joint(self):
        """log p(state, X)."""
        return NAN


cdef class Move:
    """A transition that leaves the posterior invariant, with its scratch and its counts.

    ``NAME`` stands in messages and for `Chain.sweep_only`. ``COUNTS`` names what is counted as
    accepted and proposed. ``FIELDS`` are attributes of the move itself that the next sweep depends
    on. ``STEPS`` names parts of the move that can be made alone.
    """

    NAME = ""
    COUNTS = ()
    FIELDS = ()
    STEPS = ()

    def __init__(self, bit_generator):
        self._bit_generator = bit_generator
        self.rng = draws.borrow(bit_generator)
        self.accepted = np.zeros(len(self.COUNTS), dtype=np.intp)
        self.proposed = np.zeros(len(self.COUNTS), dtype=np.intp)

    def check(self, values):
        """Raise a ValueError where fields that are right one by one do not fit together."""

    cpdef int run(self) except -1:
        """Make the move as a sweep does; BROKEN where it had no finite result."""
        return DONE

    def step(self, name):
        """Make a part of the move alone, one of ``STEPS``."""
        raise NotImplementedError(f"{self.NAME} has no steps")

    def adapt(self):
        """After a warm-up sweep: counts that follow the state. Nothing else may look at it."""

    def get_state(self):
        """Fields and counts."""
        return {
            "accepted": np.array(self.accepted), "proposed": np.array(self.proposed),
            **fields.read(self, self.FIELDS),
        }

    def set_state(self, state):
        """Take what ``get_state`` returned; a ValueError if it cannot be that."""
        values = fields.checked(self, self.FIELDS, state)
        self.check(values)
        shape = (len(self.COUNTS),)
        accepted = checked_array(state, "accepted", shape, "iu", np.intp)
        proposed = checked_array(state, "proposed", shape, "iu", np.intp)
        if (accepted < 0).any() or (accepted > proposed).any():
            raise ValueError(f"accepted of {self.NAME} must be from 0 to what was proposed")
        fields.write(self, self.FIELDS, values)
        self.accepted, self.proposed = accepted, proposed


cdef class Chain:
    """A state, its moves in the order of a sweep, and the random numbers of both.

    The contract of the runner, as far as it does not depend on the model: ``sweep``, ``adapt``,
    ``log_joint``, ``get_state``, ``set_state``, ``acceptance`` and ``broken_move``. A model adds
    ``scalars``, ``draw`` and ``simulate_data``.
    """

    def __init__(self, state, moves, bit_generator):
        self.state, self.moves, self.bit_generator = state, tuple(moves), bit_generator
        self.broken_move = ""
        self._seconds = np.zeros(len(self.moves))

    def sweep(self):
        """One transition: every move in its order."""
        cdef Py_ssize_t t
        with self.bit_generator.lock:
            before = perf_counter()
            for t in range(len(self.moves)):
                self.make(t)
                now = perf_counter()
                self._seconds[t] += now - before
                before = now
            self.n_sweeps += 1
            self.finish_sweep()

    def sweep_only(self, str name):
        """One move alone, or one step of a move."""
        cdef Py_ssize_t t
        with self.bit_generator.lock:
            for t in range(len(self.moves)):
                if self.moves[t].NAME == name:
                    self.make(t)
                    return
                if name in self.moves[t].STEPS:
                    self.moves[t].step(name)
                    return
        names = [name for move in self.moves for name in (move.NAME, *move.STEPS)]
        raise ValueError(f"move must be one of {tuple(names)}, got {name!r}")

    def move(self, str name):
        """The move of that name."""
        return next(move for move in self.moves if move.NAME == name)

    cdef int make(self, Py_ssize_t t) except -1:
        """Make a move, and remember the first after which something is not finite."""
        cdef Move move = self.moves[t]
        cdef int status = move.run()
        if not self.broken_move and (status == BROKEN or not self.is_sound()):
            self.broken_move = move.NAME
        return 0

    cpdef bint is_sound(self):
        """Whether the state is finite, where that costs little to see."""
        return True

    cpdef int finish_sweep(self) except -1:
        """What is done after the moves and is none, as rebuilding sums that rounding wears."""
        return 0

    def adapt(self, step):
        """After a warm-up sweep: let automatic counts follow the state."""
        for move in self.moves:
            move.adapt()
        self.state.adapt()

    def log_joint(self):
        """log p(state, X), NaN once a move was broken."""
        return NAN if self.broken_move else (<State> self.state).log_joint()

    def acceptance(self):
        """What is counted -> (accepted, proposed) so far."""
        return {
            name: (int(move.accepted[t]), int(move.proposed[t]))
            for move in self.moves for t, name in enumerate(move.COUNTS)
        }

    def seconds(self):
        """Name of each move -> seconds it took in all sweeps of this process."""
        return {
            move.NAME: float(spent)
            for move, spent in zip(self.moves, self._seconds, strict=True)
        }

    def get_state(self):
        """Everything that the next sweep depends on, bit for bit."""
        return {
            **self.state.get_state(),
            "moves": {move.NAME: move.get_state() for move in self.moves},
            "n_sweeps": self.n_sweeps,
            "bit_generator": self.bit_generator.state,
        }

    def set_state(self, state):
        """Restore what ``get_state`` returned, of a chain made with the same arguments.

        Raises a ValueError, and leaves the chain as it was, if it cannot be such a state: it may
        come from a file. A move that the state does not know starts its counts at 0; it must have
        no fields, for what the next sweep depends on is never made up.
        """
        before = self.get_state()
        try:
            self._put(state)
        except Exception:
            self._put(before)
            raise
        self.broken_move = ""

    def _put(self, state):
        n_sweeps = fields.Field("n_sweeps", int, at_least=0).checked(self, state, {})
        of_moves = entry(state, "moves")
        names = [move.NAME for move in self.moves]
        if not isinstance(of_moves, dict) or not set(of_moves) <= set(names):
            raise ValueError(f"moves of the state must be among {names}")
        self.state.set_state(state)
        for move in self.moves:
            if move.NAME in of_moves:
                move.set_state(of_moves[move.NAME])
            elif move.FIELDS:
                raise ValueError(f"moves of the state must have {move.NAME!r}")
        put_bit_generator(self.bit_generator, state)
        self.n_sweeps = n_sweeps
