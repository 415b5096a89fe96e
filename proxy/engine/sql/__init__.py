"""SQL that runs on answers: in a database that reaches nothing, in a process that can be ended."""
