"""The gRPC service `tacit.v1`: requests and answers as its messages."""
