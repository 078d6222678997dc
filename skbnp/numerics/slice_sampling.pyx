"""Univariate slice sampling by stepping out and shrinkage (Neal 2003, figures 3 and 5).

Whoever samples has the density, which may need a structure or an object; the step asks for it:

    slice_sampling.begin(&step, rng, x, log_density(x), low, high, width, n_steps)
    while slice_sampling.asks(&step, rng):
        slice_sampling.tell(&step, log_density(step.at))
    x = step.at
"""

from libc.math cimport INFINITY, log

from skbnp.numerics.rng cimport below, uniform

cdef enum:
    LEFT, RIGHT, WITHIN, DONE
    MOST_SHRINKS = 200      # a bracket of doubles is a point long before


cdef void begin(
    Slice* self, bitgen_t* rng, double x, double log_density, double low, double high,
    double width, Py_ssize_t n_steps,
) noexcept nogil:
    """A step from x for a density on (low, high), which is ``log_density`` at x.

    The bracket is ``width`` and at most n_steps - 1 steps of it wide, which are split at random
    between the sides; with an infinite width it is all of (low, high).
    """
    self.level = log_density + log(uniform(rng))
    self.current, self.low, self.high, self.width = x, low, high, width
    self.n_shrinks = MOST_SHRINKS
    if width == INFINITY:
        self.left, self.right, self.stage = low, high, WITHIN
        return
    self.left = x - uniform(rng) * width
    self.right = self.left + width
    self.n_left = below(rng, n_steps)
    self.n_right = n_steps - 1 - self.n_left
    self.stage = LEFT


cdef bint asks(Slice* self, bitgen_t* rng) noexcept nogil:
    """Whether the density is to be told at ``at``; if not, that is the draw.

    After too many shrinkages the point stays. That bound, and the one on steps, are symmetric in
    the two points and so keep the target.
    """
    if self.stage == LEFT:
        if self.n_left > 0 and self.left > self.low:
            self.at = self.left
            return True
        self.stage = RIGHT
    if self.stage == RIGHT:
        if self.n_right > 0 and self.right < self.high:
            self.at = self.right
            return True
        self.stage = WITHIN
    if self.stage == DONE:
        return False
    while self.n_shrinks > 0:
        self.n_shrinks -= 1
        self.at = self.left + uniform(rng) * (self.right - self.left)
        if self.low < self.at < self.high:
            return True
        _shrink(self)
    self.at = self.current
    return False


cdef void tell(Slice* self, double log_density) noexcept nogil:
    """The logarithm of the density where it was asked for."""
    if self.stage == LEFT:
        if log_density > self.level:
            self.left -= self.width
            self.n_left -= 1
        else:
            self.stage = RIGHT
    elif self.stage == RIGHT:
        if log_density > self.level:
            self.right += self.width
            self.n_right -= 1
        else:
            self.stage = WITHIN
    elif log_density >= self.level:
        self.stage = DONE
    else:
        _shrink(self)


cdef void _shrink(Slice* self) noexcept nogil:
    """Cut the bracket at a point that is not in the slice."""
    if self.at < self.current:
        self.left = self.at
    else:
        self.right = self.at
