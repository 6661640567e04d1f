"""Measuring collectives: exact inputs, interleaved or nccl-tests' timing, and the reports.

Nothing here prints, reads the command line or imports MPI: a communicator, options and functions
that take finished lines are passed in.
"""
