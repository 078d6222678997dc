cdef extern from *:
    """
    #define SKBNP_PI 3.1415926535897932385
    #define SKBNP_LOG_PI 1.1447298858494001741
    #define SKBNP_LOG_2 0.69314718055994530942
    #define SKBNP_LOG_2_PI 1.8378770664093454836
    """
    const double PI "SKBNP_PI"
    const double LOG_PI "SKBNP_LOG_PI"
    const double LOG_2 "SKBNP_LOG_2"
    const double LOG_2_PI "SKBNP_LOG_2_PI"


cdef double lgamma(double x) noexcept nogil
cdef double log_sum_exp(const double* x, Py_ssize_t n) noexcept nogil
cdef double log1p_exp(double x) noexcept nogil
cdef double log_rising(double x, double n) noexcept nogil
cdef double log_multigamma(double x, Py_ssize_t d) noexcept nogil
cdef double log_multigamma_ratio(double x, double step, Py_ssize_t d) noexcept nogil
cdef double log_gamma_cdf(double shape, double rate, double x) noexcept nogil
cdef double log_gamma_density(double x, double shape, double rate) noexcept nogil
