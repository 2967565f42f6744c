"""Hidden phases of two parties without a dealer: products under the label party's own key.

The protocol's steps in order; `two_party_features` runs them all, for one role:

    0  roles              label party A, helper B: all that there are
       lattice            the encryption
       ciphertext_link    A's public keys, and ciphertexts of which only one half is sent
       word_lengths       to how many bits that is rounded
    1  shared_cosines     A and B share the cosines of the sums of their phases (complex_slots)
    2  encrypted_product  A multiplies the shared matrix by a vector that only A knows
       vector_writing     writes real vectors so that no product wraps

B counts what it opens by `hidden.openings`. Steps that need a third party do not enter here but
into `secure/hidden`.
"""
