"""How messages travel: one module a library, all behind ``post(sends, recvs, ...) -> Pending``."""
