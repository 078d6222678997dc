cdef enum Kind:
    # Of births and the deaths that undo them: equation (I5.4).
    ORPHAN = 0          # without parents, any children
    SINGLETON = 1       # without parents, one child
    WHOLE = 2           # parents and children
    INTERVAL = 3        # a singleton by the paper's proposal of its order


cdef struct Proposal:
    # A hidden node to come or to go, and what ties it to the others.
    int kind
    double order
    Py_ssize_t n_children, n_parents
    Py_ssize_t* child               # (n_children,) slots
    double* weight                  # (n_children,) of the edges to them
    Py_ssize_t* parent              # (n_parents,) slots, by ascending order
    # (n_children,) parameters of the children without the node and with it.
    double* bias_without
    double* bias_with
    double* precision_without
    double* precision_with
