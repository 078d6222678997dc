cdef enum:
    # Named wrong formulas, as in ``_sampler.FAULTS``: each must make a test fail.
    PRINTED_RATIO = 1
    INVERTED_RATE = 2
    SQUARED_COUNT = 3
    NO_SURVIVOR_RULE = 4
    OWN_COUNT = 5
    NO_TRUNCATION = 6
    STALE_LAWS = 7
    NO_URN = 8
    NO_PIVOT = 9
