cdef struct Map:
    # Rows of one channel each: images side by side, each with a border of one pixel of zeros, and
    # room at both ends for columns shifted beyond them.
    Py_ssize_t channels, height, width
    Py_ssize_t row                  # numbers from one channel to the next
    Py_ssize_t first                # of the first image in a row


cdef struct Edge:
    Py_ssize_t parent, child        # places of nodes
    Py_ssize_t weight               # where its tensor begins
    bint opens, closes              # first and last child that see the parent at this side
    Map view                        # how the child sees the parent


cdef class Network:
    cdef:
        readonly Py_ssize_t n_nodes, n_edges, n_classes, n_weights
        readonly Py_ssize_t chunk           # images that are worked on at a time
        Py_ssize_t n_pixels                 # numbers of one image
        Py_ssize_t n_readouts, output_bias
        Map* map                            # (n_nodes,)
        Edge* edge                          # (n_edges,) by parent, then by side of the child
        Edge* readout                       # (n_readouts,)
        Py_ssize_t[::1] place, bias         # (n_nodes,) of its map in ``value``, of its bias
        Py_ssize_t[::1] size                # (n_nodes,) numbers of its map
        float[::1] value, slope             # maps of all nodes, and gradients of these
        float[::1] view, view_slope         # of one edge or readout
        float[::1] column, column_slope     # shifted copies of a view
        float[::1] feature, feature_slope   # (chunk * most numbers that a readout sees,)
        float[::1] logit                    # (chunk * n_classes,)

    cdef void load(
        self, const float* images, const Py_ssize_t* rows, Py_ssize_t n
    ) noexcept nogil
    cdef void forward(self, const float* weight, Py_ssize_t n) noexcept nogil
    cdef void backward(self, const float* weight, float* gradient, Py_ssize_t n) noexcept nogil
    cdef double _settle_rows(
        self, const Py_ssize_t* label, const Py_ssize_t* rows, Py_ssize_t n, bint as_slope
    ) noexcept nogil
    cdef double add_gradient(
        self, const float* images, const Py_ssize_t* label, const Py_ssize_t* rows, Py_ssize_t n,
        const float* weight, float* gradient,
    ) noexcept nogil
    cdef double log_likelihood(
        self, const float* images, const Py_ssize_t* label, const Py_ssize_t* rows, Py_ssize_t n,
        const float* weight,
    ) noexcept nogil
    cdef float* _seen(self, Edge* at, Py_ssize_t n) noexcept nogil
    cdef void _return_slope(self, Edge* at, Py_ssize_t n) noexcept nogil
    cdef void _rectify(self, Py_ssize_t k, Py_ssize_t n) noexcept nogil
    cdef void _read(self, const float* weight, Py_ssize_t n) noexcept nogil
    cdef void _read_back(self, const float* weight, float* gradient, Py_ssize_t n) noexcept nogil
    cdef bint _is_identity(self, Edge* at) noexcept nogil
