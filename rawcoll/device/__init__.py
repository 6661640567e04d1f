"""Where arrays live and where work is ordered: memory, streams and events, one module a device."""
