"""The process: gRPC and Flight SQL, sources, configuration, command line. No privacy logic."""
