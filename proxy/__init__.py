"""The process: gRPC and Flight SQL, sources, configuration, command line. Knows no privacy."""
