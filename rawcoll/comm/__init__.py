"""From a started job to calls: bootstrap, handshake, the communicator."""
