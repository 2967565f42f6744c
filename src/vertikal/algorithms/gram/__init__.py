"""SecGram (Polato et al.): exact dot-product kernels, between parties and between many clients.

Programs that end in a kernel matrix enter; what is learned from the matrix stands elsewhere.
"""
