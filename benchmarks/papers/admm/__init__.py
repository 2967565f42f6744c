"""ADMM sharing (Hu, Niu, Yang, Zhou 2019): its figures on the data that is at hand."""
