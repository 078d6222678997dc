cdef double lgamma(double x) noexcept nogil
cdef double log_sum_exp(const double* x, Py_ssize_t n) noexcept nogil
cdef double log1p_exp(double x) noexcept nogil
cdef double log_rising(double x, double n) noexcept nogil
cdef double log_multigamma(double x, Py_ssize_t d) noexcept nogil
cdef double log_multigamma_ratio(double x, double step, Py_ssize_t d) noexcept nogil
cdef double log_gamma_cdf(double shape, double rate, double x) noexcept nogil
cdef double log_gamma_density(double x, double shape, double rate) noexcept nogil
