"""Weights of one network: steps of Adam on their posterior, and of stochastic-gradient HMC.

Both move z = w / (prior deviation), whose prior is standard normal; the gradient of the log
posterior is that of a batch times (rows / batch), minus z.
"""

from libc.math cimport pow, sqrt
from libc.string cimport memset

import numpy as np

from skbnp.icp_network.convolution._network cimport Network
from skbnp.numerics cimport rng as draws


cdef class Training:
    """The weights z of a layout, some images to learn from, and steps of both kinds."""

    def __init__(self, layout, images, label, rows, z, bit_generator):
        """``images`` (n, n_pixels), of which ``rows`` are learnt from; it starts from ``z``."""
        self._bit_generator, self.rng = bit_generator, draws.borrow(bit_generator)
        self.net = Network(layout)
        self.images, self.label = images, label
        self.rows = np.array(rows, dtype=np.intp)
        self.at = len(rows)
        self.deviation = layout.deviations.astype(np.float32)
        self.z = np.array(z, dtype=np.float32)
        if not self.z.shape[0] == self.deviation.shape[0] == self.net.n_weights:
            raise ValueError(f"z must have {self.net.n_weights} numbers, got {self.z.shape[0]}")
        if not np.isin(np.asarray(label), np.arange(self.net.n_classes)).all():
            raise ValueError("labels must be of classes that there are")
        self.momentum = np.zeros(self.net.n_weights, dtype=np.float32)
        self.weight, self.gradient, self.first, self.second = np.zeros(
            (4, self.net.n_weights), dtype=np.float32
        )

    def put(self, z, momentum):
        """Take weights and momentum over."""
        np.asarray(self.z)[:] = z
        np.asarray(self.momentum)[:] = momentum

    def log_likelihood(self, const Py_ssize_t[::1] rows):
        """Of the labels of these images."""
        cdef double total = 0.0
        if rows.shape[0] > 0:
            with nogil:
                self._fill_weight()
                total = self.net.log_likelihood(
                    &self.images[0, 0], &self.label[0], &rows[0], rows.shape[0], &self.weight[0]
                )
        return total

    def slope(self, Py_ssize_t n_batch):
        """Gradient of the log posterior by the next batch, for the tests."""
        self._slope(n_batch)
        return np.array(self.gradient)

    def climb(self, Py_ssize_t n_steps, Py_ssize_t n_batch, double rate):
        """So many steps of Adam (Kingma and Ba 2015), the rate falling linearly to 0."""
        cdef Py_ssize_t t, i
        cdef float g, step, forget
        memset(&self.first[0], 0, self.net.n_weights * sizeof(float))
        memset(&self.second[0], 0, self.net.n_weights * sizeof(float))
        with nogil:
            for t in range(n_steps):
                self._slope(n_batch)
                step = <float> (rate * (1.0 - <double> t / n_steps) / (1.0 - pow(0.9, t + 1.0)))
                forget = <float> (1.0 / (1.0 - pow(0.999, t + 1.0)))
                for i in range(self.net.n_weights):
                    g = self.gradient[i]
                    self.first[i] = <float> 0.9 * self.first[i] + <float> 0.1 * g
                    self.second[i] = <float> 0.999 * self.second[i] + <float> 0.001 * g * g
                    self.z[i] += step * self.first[i] / (
                        <float> sqrt(self.second[i] * forget) + <float> 1e-8
                    )

    def wander(
        self, Py_ssize_t n_steps, Py_ssize_t n_batch, double step, double friction,
        double temperature,
    ):
        """So many steps of stochastic-gradient HMC: equation (I10.5)."""
        cdef Py_ssize_t _, i
        cdef float keep = <float> (1.0 - friction), length = <float> step
        cdef float noise = <float> sqrt(2.0 * friction * temperature)
        with nogil:
            for _ in range(n_steps):
                self._slope(n_batch)
                for i in range(self.net.n_weights):
                    self.momentum[i] = keep * self.momentum[i] + length * self.gradient[i] + (
                        noise * <float> draws.normal(self.rng)
                    )
                    self.z[i] += length * self.momentum[i]

    cdef void _fill_weight(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.net.n_weights):
            self.weight[i] = self.deviation[i] * self.z[i]

    cdef void _next_batch(self, Py_ssize_t n) noexcept nogil:
        """Let the next n rows stand at ``at``; all have their turn before any has it again."""
        if self.at + n > self.rows.shape[0]:
            draws.shuffle(self.rng, &self.rows[0], self.rows.shape[0])
            self.at = 0

    cdef double _slope(self, Py_ssize_t n) noexcept nogil:
        """Gradient of the log posterior by the next batch; the batch's log likelihood."""
        cdef Py_ssize_t i, n_rows = self.rows.shape[0]
        cdef double total = 0.0
        cdef float scale = 0.0
        n = min(n, n_rows)
        self._fill_weight()
        memset(&self.gradient[0], 0, self.net.n_weights * sizeof(float))
        if n > 0:
            self._next_batch(n)
            total = self.net.add_gradient(
                &self.images[0, 0], &self.label[0], &self.rows[self.at], n, &self.weight[0],
                &self.gradient[0],
            )
            self.at += n
            scale = <float> (n_rows / <double> n)
        for i in range(self.net.n_weights):
            self.gradient[i] = scale * self.deviation[i] * self.gradient[i] - self.z[i]
        return total
