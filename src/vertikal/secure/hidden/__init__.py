"""Hidden phases (``disclosure="values"``): a label party multiplies by features that nobody sees.

The protocol's steps in order, one file each; `hidden_features` runs them all, for one role:

    0  roles            label party A, helper H, dealer T: three different parties
       dealing          T draws one key with A and one with H; its numbers go to H
    1  phase_shares     A and H share the sum of everybody's phases but T's
    2  trigonometric    shares of a phase become shares of its cosine, by a correlation of T
       cosine_shares    runs steps 1 and 2, block by block
    3  private_product  A multiplies the shared matrix by a vector that only A knows
       fixed_point      writes real vectors so that no product wraps
       openings         H counts what it opens, and refuses more than was agreed
       opening_noise    H adds noise to it, so that as many bits remain as were agreed

Arrays between two roles travel by `padded_link`, which a third role cannot read. Steps for vectors
that are shared as well do not enter here but into `secure/sealed`.
"""
