# Named wrong formulas, for the tests alone: each must make a test fail. `_sampler.FAULTS` names
# them; the first four are those of `processes.multiplicative_gamma`.
cdef enum Fault:
    NONE
    CHILDREN_ONLY           # the multipliers' rule as the paper prints it
    DESCENDANTS_ONLY        # the subtree without its root
    CHILDREN_SHAPE          # the right rate, but the shape of the children
    NO_DETERMINANT          # path densities without |R|
    KEEPS_OWN_COUNT         # collapsed paths that count the row itself
    NO_NEW_PATHS            # slice paths over occupied leaves only
    FLAT_SCORES             # scores with independent noise
    UNWEIGHTED_ROWS         # loadings without the branches' noise scales
    MEAN_GIVEN_SCORES       # leaf means with the noise of y given x, but x integrated
    FILLS_IN                # loadings without the Schur complements
    BLIND_BIRTH             # new loadings that do not look at the row they are born for
    SHORT_TAIL              # u_i as if no entry of its row were observed
