"""The ``rawcoll`` command: one subcommand a file.

Every module here except ``main`` and those with a leading underscore is a subcommand and defines

``NAME``, ``HELP``
    its word on the command line and one line of help;
``add_arguments(parser)``
    declares its arguments on an ``argparse`` parser;
``run(arguments) -> int``
    does the work and returns the exit status.

The modules are imported to print the help, so they import what they need (numpy, MPI, a plotting
library) inside ``run``. Nothing outside this package prints or exits.
"""
