"""An edge that other processes of its host share, by a socket: frames are taken, opened and matched once for all.

Whoever connects says what it wants, as the application of an edge of its own would, and gets what that would get. What
it has got lets it go on exactly, so nothing is lost when the edge starts anew. The socket is a file that only its owner
may open; on it, each note is the sizes of a JSON text and of the bytes that belong to it, and those.
"""
