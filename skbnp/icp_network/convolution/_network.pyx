"""Convolutional networks over a graph of maps: what they say of images, and its gradient.

T_i = ReLU(beta_i + sum_k W_ki * pool(T_k)) over the parents k of node i, kernels of 3 x 3 padded by
one pixel; logits = beta_Y + sum_k V_k . vec(pool(T_k)): equations (I10.1) and (I10.2).
"""

from libc.math cimport exp, log
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

import numpy as np

from skbnp.numerics.linalg_single cimport gemm_single

from skbnp.icp_network.convolution._layout import OUTPUT

# Numbers of the largest map that stay in a core's second-level cache, with their copies.
cdef enum:
    NUMBERS_OF_A_CHUNK = 8000
    MOST_IMAGES = 32


cdef class Network:
    """A layout made ready to compute with, for chunks of images.

    Every node has a map, ``value``, whose borders are zeros. Chunks do not depend on threads, and
    their sums are added in order, so that the same numbers always come out.
    """

    def __init__(self, layout):
        """``layout`` is a `Layout`."""
        cdef Py_ssize_t i, most_view = 1, most_column = 1, most_feature = 1, at, k
        self.n_nodes, self.n_edges = len(layout.nodes), len(layout.edges)
        self.n_readouts = len(layout.readouts)
        self.n_classes = layout.n_classes
        self.n_weights = layout.n_weights
        channels, height, width = layout.shapes[0]
        self.n_pixels = channels * height * width
        self.chunk = max(1, min(MOST_IMAGES, NUMBERS_OF_A_CHUNK // ((height + 2) * (width + 2))))
        self.map = <Map*> calloc(self.n_nodes, sizeof(Map))
        self.edge = <Edge*> calloc(max(1, self.n_edges), sizeof(Edge))
        self.readout = <Edge*> calloc(max(1, self.n_readouts), sizeof(Edge))
        if self.map == NULL or self.edge == NULL or self.readout == NULL:
            raise MemoryError
        self.place, self.size, self.bias = np.zeros((3, self.n_nodes), dtype=np.intp)
        starts, at = layout.starts, 0
        for i, (channels, height, width) in enumerate(layout.shapes):
            self.map[i] = map_of(channels, height, width, self.chunk)
            self.place[i], self.size[i] = at, channels * self.map[i].row
            at += self.size[i]
            if i > 0:
                self.bias[i] = starts["bias", layout.nodes[i]]
        self.output_bias = starts["bias", OUTPUT]
        self.value, self.slope = np.zeros(at, np.float32), np.zeros(at, np.float32)
        for i, (parent, child) in enumerate(layout.edges):
            _, height, width = layout.shapes[child]
            self.edge[i].parent, self.edge[i].child = parent, child
            self.edge[i].weight = starts[layout.nodes[parent], layout.nodes[child]]
            self.edge[i].view = map_of(layout.shapes[parent][0], height, width, self.chunk)
            most_view = max(most_view, self.edge[i].view.channels * self.edge[i].view.row)
            most_column = max(most_column, 9 * self.edge[i].view.channels * self.edge[i].view.row)
        for i in range(self.n_edges):
            self.edge[i].opens = i == 0 or not is_same_view(&self.edge[i - 1], &self.edge[i])
            self.edge[i].closes = i + 1 == self.n_edges or not is_same_view(
                &self.edge[i], &self.edge[i + 1]
            )
        for i, (k, height, width) in enumerate(layout.readouts):
            self.readout[i].parent, self.readout[i].child = k, -1
            self.readout[i].weight = starts[layout.nodes[k], OUTPUT]
            self.readout[i].view = map_of(layout.shapes[k][0], height, width, self.chunk)
            most_view = max(most_view, self.readout[i].view.channels * self.readout[i].view.row)
            most_feature = max(most_feature, layout.shapes[k][0] * height * width)
        self.view, self.view_slope = np.zeros((2, most_view), np.float32)
        self.column, self.column_slope = np.zeros((2, most_column), np.float32)
        self.feature, self.feature_slope = np.zeros((2, self.chunk * most_feature), np.float32)
        self.logit = np.zeros(self.chunk * self.n_classes, np.float32)

    def __dealloc__(self):
        free(self.map)
        free(self.edge)
        free(self.readout)

    # -- for Python ---------------------------------------------------------------------------

    def logits(self, const float[:, ::1] images, const float[::1] weight):
        """Of images (n, n_pixels), channels first: (n, n_classes)."""
        cdef Py_ssize_t i, t, n = images.shape[0], m
        self._check(images, weight)
        cdef float[:, ::1] out = np.zeros((n, self.n_classes), dtype=np.float32)
        cdef Py_ssize_t[::1] rows = np.arange(max(1, n), dtype=np.intp)
        with nogil:
            for t in range(n_chunks(n, self.chunk)):
                i = t * self.chunk
                m = min(self.chunk, n - i)
                self.load(&images[0, 0], &rows[i], m)
                self.forward(&weight[0], m)
                memcpy(&out[i, 0], &self.logit[0], m * self.n_classes * sizeof(float))
        return np.asarray(out)

    def gradient(
        self, const float[:, ::1] images, const Py_ssize_t[::1] label, const float[::1] weight
    ):
        """Log likelihood of images (n, n_pixels) with their labels, and its gradient."""
        self._check(images, weight)
        self._check_labels(images, label)
        cdef float[::1] out = np.zeros(self.n_weights, dtype=np.float32)
        cdef Py_ssize_t[::1] rows = np.arange(max(1, images.shape[0]), dtype=np.intp)
        cdef double total = 0.0
        if images.shape[0] > 0:
            with nogil:
                total = self.add_gradient(
                    &images[0, 0], &label[0], &rows[0], images.shape[0], &weight[0], &out[0]
                )
        return total, np.asarray(out)

    def maps(self, const float[:, ::1] images, const float[::1] weight):
        """Maps of all nodes of images (n, n_pixels): arrays (n, height, width, channels)."""
        cdef Py_ssize_t i, k, t, m, n = images.shape[0]
        cdef Map* a
        self._check(images, weight)
        cdef Py_ssize_t[::1] rows = np.arange(max(1, n), dtype=np.intp)
        shapes = [
            (n, self.map[k].height, self.map[k].width, self.map[k].channels)
            for k in range(self.n_nodes)
        ]
        out = [np.zeros(shape, dtype=np.float32) for shape in shapes]
        for t in range(n_chunks(n, self.chunk)):
            i = t * self.chunk
            m = min(self.chunk, n - i)
            with nogil:
                self.load(&images[0, 0], &rows[i], m)
                self.forward(&weight[0], m)
            for k in range(self.n_nodes):
                a = &self.map[k]
                values = np.asarray(self.value)[self.place[k]:self.place[k] + self.size[k]]
                values = values.reshape(a.channels, a.row)
                length = m * (a.height + 2) * (a.width + 2)
                values = values[:, a.first:a.first + length]
                values = values.reshape(a.channels, m, a.height + 2, a.width + 2)
                out[k][i:i + m] = values[:, :, 1:-1, 1:-1].transpose(1, 2, 3, 0)
        return out

    def _check(self, images, weight):
        if images.shape[1] != self.n_pixels or weight.shape[0] != self.n_weights:
            raise ValueError(
                f"images must have {self.n_pixels} numbers and weights {self.n_weights}, got "
                f"{images.shape[1]} and {weight.shape[0]}"
            )

    def _check_labels(self, images, label):
        found = np.asarray(label)
        if len(found) != images.shape[0] or not np.isin(found, np.arange(self.n_classes)).all():
            raise ValueError("each image must have a label of a class that there is")

    # -- likelihood ---------------------------------------------------------------------------

    cdef double add_gradient(
        self, const float* images, const Py_ssize_t* label, const Py_ssize_t* rows, Py_ssize_t n,
        const float* weight, float* gradient,
    ) noexcept nogil:
        """Log likelihood of the rows, whose gradient is added; in fixed chunks, in order."""
        cdef Py_ssize_t i, t, m
        cdef double total = 0.0
        for t in range(n_chunks(n, self.chunk)):
            i = t * self.chunk
            m = min(self.chunk, n - i)
            self.load(images, rows + i, m)
            self.forward(weight, m)
            total += self._settle_rows(label, rows + i, m, True)
            self.backward(weight, gradient, m)
        return total

    cdef double log_likelihood(
        self, const float* images, const Py_ssize_t* label, const Py_ssize_t* rows, Py_ssize_t n,
        const float* weight,
    ) noexcept nogil:
        """Of the rows."""
        cdef Py_ssize_t i, t, m
        cdef double total = 0.0
        for t in range(n_chunks(n, self.chunk)):
            i = t * self.chunk
            m = min(self.chunk, n - i)
            self.load(images, rows + i, m)
            self.forward(weight, m)
            total += self._settle_rows(label, rows + i, m, False)
        return total

    cdef double _settle_rows(
        self, const Py_ssize_t* label, const Py_ssize_t* rows, Py_ssize_t n, bint as_slope
    ) noexcept nogil:
        """log softmax of the labels, in double precision; logits become its slopes if asked."""
        cdef Py_ssize_t i, j
        cdef double total = 0.0, most, sum_
        cdef float* logit
        for i in range(n):
            logit = &self.logit[i * self.n_classes]
            most = logit[0]
            for j in range(1, self.n_classes):
                most = max(most, <double> logit[j])
            sum_ = 0.0
            for j in range(self.n_classes):
                sum_ += exp(logit[j] - most)
            total += logit[label[rows[i]]] - most - log(sum_)
            if as_slope:
                for j in range(self.n_classes):
                    logit[j] = <float> (-exp(logit[j] - most) / sum_)
                logit[label[rows[i]]] += 1.0
        return total

    # -- forward ------------------------------------------------------------------------------

    cdef void load(
        self, const float* images, const Py_ssize_t* rows, Py_ssize_t n
    ) noexcept nogil:
        """Images into the map of X."""
        cdef Map* a = &self.map[0]
        cdef Py_ssize_t b, c, i, area = a.height * a.width, wide = a.width + 2
        cdef float* out
        cdef const float* image
        for c in range(a.channels):
            for b in range(n):
                image = images + rows[b] * self.n_pixels + c * area
                out = &self.value[c * a.row + a.first + b * (a.height + 2) * wide + wide + 1]
                for i in range(a.height):
                    memcpy(out + i * wide, image + i * a.width, a.width * sizeof(float))

    cdef void forward(self, const float* weight, Py_ssize_t n) noexcept nogil:
        """Maps and logits of the n images that were loaded."""
        cdef Py_ssize_t k, e = 0, c, i, length
        cdef Edge* at
        cdef Map* a
        cdef float* out
        for k in range(1, self.n_nodes):
            a = &self.map[k]
            length = n * (a.height + 2) * (a.width + 2)
            for c in range(a.channels):
                out = &self.value[self.place[k] + c * a.row + a.first]
                for i in range(length):
                    out[i] = weight[self.bias[k] + c]
        for k in range(self.n_nodes):
            if k > 0:
                self._rectify(k, n)
            while e < self.n_edges and self.edge[e].parent == k:
                at = &self.edge[e]
                length = n * (at.view.height + 2) * (at.view.width + 2)
                if at.opens:
                    copy_shifted(self._seen(at, n), &at.view, length, &self.column[0])
                a = &self.map[at.child]
                gemm_single(
                    False, False, a.channels, length, 9 * at.view.channels, weight + at.weight,
                    9 * at.view.channels, &self.column[0], length, True,
                    &self.value[self.place[at.child] + a.first], a.row,
                )
                e += 1
        self._read(weight, n)

    cdef void _rectify(self, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
        """ReLU of a map, and zeros in its borders."""
        cdef Map* a = &self.map[k]
        cdef Py_ssize_t c, i, wide = a.width + 2, tall = a.height + 2
        cdef float* out
        for c in range(a.channels):
            out = &self.value[self.place[k] + c * a.row + a.first]
            for i in range(n * tall * wide):
                out[i] = out[i] if out[i] > 0.0 else 0.0
            clear_border(out, a.height, a.width, n)

    cdef bint _is_identity(self, Edge* at) noexcept nogil:
        cdef Map* a = &self.map[at.parent]
        return a.height == at.view.height and a.width == at.view.width

    cdef float* _seen(self, Edge* at, Py_ssize_t n) noexcept nogil:
        """The parent's map as the child sees it, pooled to its side."""
        cdef Map* a = &self.map[at.parent]
        if self._is_identity(at):
            return &self.value[self.place[at.parent]]
        memset(&self.view[0], 0, at.view.channels * at.view.row * sizeof(float))
        pool(&self.value[self.place[at.parent]], a, &self.view[0], &at.view, n, False)
        return &self.view[0]

    cdef void _read(self, const float* weight, Py_ssize_t n) noexcept nogil:
        """Logits of the n images."""
        cdef Py_ssize_t i, j, length
        cdef Edge* at
        for i in range(n):
            for j in range(self.n_classes):
                self.logit[i * self.n_classes + j] = weight[self.output_bias + j]
        for i in range(self.n_readouts):
            at = &self.readout[i]
            length = at.view.channels * at.view.height * at.view.width
            move_interior(self._seen(at, n), &at.view, &self.feature[0], n, False)
            gemm_single(
                False, True, n, self.n_classes, length, &self.feature[0], length,
                weight + at.weight, length, True, &self.logit[0], self.n_classes,
            )

    # -- backward -----------------------------------------------------------------------------

    cdef void backward(self, const float* weight, float* gradient, Py_ssize_t n) noexcept nogil:
        """Add the gradient of the n images of the last forward pass; ``logit`` has its slopes."""
        cdef Py_ssize_t k, e = self.n_edges - 1, c, i, length, deep
        cdef Edge* at
        cdef Map* a
        cdef float total
        cdef float* slope
        cdef const float* value
        for k in range(1, self.n_nodes):
            memset(&self.slope[self.place[k]], 0, self.size[k] * sizeof(float))
        self._read_back(weight, gradient, n)
        for k in range(self.n_nodes - 1, -1, -1):
            # All children are done: their slopes are those of their sums.
            while e >= 0 and self.edge[e].parent == k:
                at = &self.edge[e]
                a = &self.map[at.child]
                deep = 9 * at.view.channels
                length = n * (at.view.height + 2) * (at.view.width + 2)
                slope = &self.slope[self.place[at.child] + a.first]
                if at.closes:
                    copy_shifted(self._seen(at, n), &at.view, length, &self.column[0])
                gemm_single(
                    False, True, a.channels, deep, length, slope, a.row, &self.column[0], length,
                    True, gradient + at.weight, deep,
                )
                if k > 0:
                    gemm_single(
                        True, False, deep, length, a.channels, weight + at.weight, deep, slope,
                        a.row, not at.closes, &self.column_slope[0], length,
                    )
                    if at.opens:
                        self._return_slope(at, n)
                e -= 1
            if k == 0:
                break
            a = &self.map[k]
            length = n * (a.height + 2) * (a.width + 2)
            for c in range(a.channels):
                value = &self.value[self.place[k] + c * a.row + a.first]
                slope = &self.slope[self.place[k] + c * a.row + a.first]
                total = 0.0
                for i in range(length):
                    slope[i] = slope[i] if value[i] > 0.0 else 0.0
                    total += slope[i]
                gradient[self.bias[k] + c] += total

    cdef void _return_slope(self, Edge* at, Py_ssize_t n) noexcept nogil:
        """Slopes of shifted copies to those of the parent's map."""
        cdef Map* a = &self.map[at.parent]
        cdef Py_ssize_t length = n * (at.view.height + 2) * (at.view.width + 2)
        if self._is_identity(at):
            add_shifted(&self.column_slope[0], &at.view, length, &self.slope[self.place[at.parent]])
            return
        memset(&self.view_slope[0], 0, at.view.channels * at.view.row * sizeof(float))
        add_shifted(&self.column_slope[0], &at.view, length, &self.view_slope[0])
        pool(&self.slope[self.place[at.parent]], a, &self.view_slope[0], &at.view, n, True)

    cdef void _read_back(
        self, const float* weight, float* gradient, Py_ssize_t n
    ) noexcept nogil:
        """Gradient of what the output reads, and slopes of what it has read."""
        cdef Py_ssize_t i, j, length
        cdef Edge* at
        for i in range(n):
            for j in range(self.n_classes):
                gradient[self.output_bias + j] += self.logit[i * self.n_classes + j]
        for i in range(self.n_readouts):
            at = &self.readout[i]
            length = at.view.channels * at.view.height * at.view.width
            move_interior(self._seen(at, n), &at.view, &self.feature[0], n, False)
            gemm_single(
                True, False, self.n_classes, length, n, &self.logit[0], self.n_classes,
                &self.feature[0], length, True, gradient + at.weight, length,
            )
            if at.parent == 0:
                continue
            gemm_single(
                False, False, n, length, self.n_classes, &self.logit[0], self.n_classes,
                weight + at.weight, length, False, &self.feature_slope[0], length,
            )
            if self._is_identity(at):
                move_interior(
                    &self.slope[self.place[at.parent]], &at.view, &self.feature_slope[0], n, True
                )
                continue
            memset(&self.view_slope[0], 0, at.view.channels * at.view.row * sizeof(float))
            move_interior(&self.view_slope[0], &at.view, &self.feature_slope[0], n, True)
            pool(
                &self.slope[self.place[at.parent]], &self.map[at.parent], &self.view_slope[0],
                &at.view, n, True,
            )


# -- maps -------------------------------------------------------------------------------------


cdef Map map_of(Py_ssize_t channels, Py_ssize_t height, Py_ssize_t width, Py_ssize_t n) noexcept:
    """A map of n images."""
    cdef Map out
    out.channels, out.height, out.width = channels, height, width
    out.first = width + 3
    out.row = n * (height + 2) * (width + 2) + 2 * out.first
    return out


cdef Py_ssize_t n_chunks(Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    return (n + size - 1) // size


cdef bint is_same_view(Edge* a, Edge* b) noexcept:
    return (
        a.parent == b.parent and a.view.height == b.view.height and a.view.width == b.view.width
    )


cdef void clear_border(
    float* x, Py_ssize_t height, Py_ssize_t width, Py_ssize_t n
) noexcept nogil:
    """Zeros around the n images of one channel."""
    cdef Py_ssize_t _, i, wide = width + 2
    for _ in range(n):
        memset(x, 0, wide * sizeof(float))
        for i in range(1, height + 1):
            x[i * wide] = x[i * wide + wide - 1] = 0.0
        memset(x + (height + 1) * wide, 0, wide * sizeof(float))
        x += (height + 2) * wide


cdef void copy_shifted(
    const float* x, Map* a, Py_ssize_t length, float* out
) noexcept nogil:
    """The nine shifts of each channel, row by row: (9 channels, length)."""
    cdef Py_ssize_t c, i, j
    for c in range(a.channels):
        for i in range(-1, 2):
            for j in range(-1, 2):
                memcpy(
                    out, x + c * a.row + a.first + i * (a.width + 2) + j, length * sizeof(float)
                )
                out += length


cdef void add_shifted(
    const float* column, Map* a, Py_ssize_t length, float* x
) noexcept nogil:
    """The transpose of ``copy_shifted``, added."""
    cdef Py_ssize_t c, i, j, t
    cdef float* out
    for c in range(a.channels):
        for i in range(-1, 2):
            for j in range(-1, 2):
                out = x + c * a.row + a.first + i * (a.width + 2) + j
                for t in range(length):
                    out[t] += column[t]
                column += length


cdef void move_interior(
    float* x, Map* a, float* feature, Py_ssize_t n, bint back
) noexcept nogil:
    """Images without borders as rows (n, channels height width); or, ``back``, added to them."""
    cdef Py_ssize_t b, c, _, j, wide = a.width + 2
    cdef float* image
    for b in range(n):
        for c in range(a.channels):
            image = x + c * a.row + a.first + b * (a.height + 2) * wide + wide + 1
            for _ in range(a.height):
                for j in range(a.width):
                    if back:
                        image[j] += feature[j]
                    else:
                        feature[j] = image[j]
                image += wide
                feature += a.width


cdef void pool(
    float* x, Map* a, float* y, Map* b, Py_ssize_t n, bint back
) noexcept nogil:
    """Adaptive average pooling of maps x to maps y; or, ``back``, its transpose added to x.

    Pixel i of h takes the mean of the pixels floor(i H / h) to ceil((i + 1) H / h) - 1 of H.
    """
    cdef Py_ssize_t c, m, i, j, top, bottom, left, right, s, t
    cdef Py_ssize_t wide = a.width + 2, narrow = b.width + 2
    cdef float* large
    cdef float* small
    cdef float total, share
    for c in range(a.channels):
        for m in range(n):
            large = x + c * a.row + a.first + m * (a.height + 2) * wide + wide + 1
            small = y + c * b.row + b.first + m * (b.height + 2) * narrow + narrow + 1
            for i in range(b.height):
                top = i * a.height // b.height
                bottom = ((i + 1) * a.height + b.height - 1) // b.height
                for j in range(b.width):
                    left = j * a.width // b.width
                    right = ((j + 1) * a.width + b.width - 1) // b.width
                    share = <float> (1.0 / ((bottom - top) * (right - left)))
                    if back:
                        total = share * small[i * narrow + j]
                        for s in range(top, bottom):
                            for t in range(left, right):
                                large[s * wide + t] += total
                        continue
                    total = 0.0
                    for s in range(top, bottom):
                        for t in range(left, right):
                            total += large[s * wide + t]
                    small[i * narrow + j] = share * total
