# What importance sampling around the modes of a row's noises proposes, and how modes are sought.

cdef extern from *:
    """
    /* Proposals are Gaussians around the modes, as if the columns were noisier by one of these
       factors: the density of a unit that saturates falls more slowly on that side. LOOSE of them
       have the second; DEFENSIVE of all are from the prior, which bounds the weights. */
    static const double skbnp_noisier[2] = {1.15, 4.0};
    #define SKBNP_LOOSE 0.2
    #define SKBNP_DEFENSIVE 0.1
    /* Gain of a step of the search, in nats, that is the last; distance of modes that are one. */
    #define SKBNP_ENOUGH 0.02
    #define SKBNP_NEXT_TO 0.2
    """
    const double* NOISIER "skbnp_noisier"
    const double LOOSE "SKBNP_LOOSE"
    const double DEFENSIVE "SKBNP_DEFENSIVE"
    const double ENOUGH "SKBNP_ENOUGH"
    const double NEXT_TO "SKBNP_NEXT_TO"
