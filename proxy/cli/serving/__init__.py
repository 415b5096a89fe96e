"""The processes of `tacit serve`: one or several, what each of them runs, and how it ends."""
