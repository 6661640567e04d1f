"""The C++ extension's place. It may be missing: whoever imports ``rawcoll.native._native`` can do without."""
