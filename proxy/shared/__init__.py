"""What the client's commands share with the server: values and their texts, which load little else.

It has no face: a command that only asks a server loads one of them, and no library of the server.
"""
