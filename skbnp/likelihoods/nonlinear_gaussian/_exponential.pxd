# exp that compilers turn into vector instructions, and what is made of it. The same operations in
# the same order everywhere, so that the bits do not depend on where a value was computed.

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
    /* Without fused operations, whose rounding would differ from that of the default clone. */
    #define SKBNP_CLONES __attribute__((target_clones("avx2", "default")))
    #else
    #define SKBNP_CLONES
    #endif

    /* Relative error below 5e-16 from -708 to 709; beyond that the ends' values. NaN stays.
       Cody and Waite: x = k log 2 + r, and Taylor's polynomial on |r| < 0.347. */
    static inline double skbnp_quick_exp(double x) {
        const double shift = 0x1.8p52;
        double t, k, r, p, scale;
        uint64_t bits;
        x = x < -708.0 ? -708.0 : x;
        x = x > 709.0 ? 709.0 : x;
        t = x * 0x1.71547652b82fep0 + shift;
        k = t - shift;
        r = x - k * 0x1.62e42fefa0000p-1;
        r = r - k * 0x1.cf79abc9e3b3ap-40;
        p = 1.6059043836821613e-10;
        p = p * r + 2.08767569878681e-09;
        p = p * r + 2.505210838544172e-08;
        p = p * r + 2.755731922398589e-07;
        p = p * r + 2.7557319223985893e-06;
        p = p * r + 2.48015873015873e-05;
        p = p * r + 1.984126984126984e-04;
        p = p * r + 1.388888888888889e-03;
        p = p * r + 8.333333333333333e-03;
        p = p * r + 4.1666666666666664e-02;
        p = p * r + 0.16666666666666666;
        p = p * r + 0.5;
        p = p * r + 1.0;
        p = p * r + 1.0;
        memcpy(&bits, &t, sizeof bits);
        bits = (bits + 1023) << 52;
        memcpy(&scale, &bits, sizeof scale);
        return p * scale;
    }

    static inline double skbnp_quick_squash(double a) {
        return 1.0 - 2.0 / (1.0 + skbnp_quick_exp(a));
    }
    """
    double quick_exp "skbnp_quick_exp"(double x) noexcept nogil
    # tanh(a / 2) to an absolute error of 3e-16.
    double quick_squash "skbnp_quick_squash"(double a) noexcept nogil
