"""The window: a Textual app over the daemon's socket.

It knows the daemon by `daemon.protocol` and `daemon.client` alone, and keeps nothing that closing it
would lose.

    __main__ ─▶ app ─▶ screens ─▶ panes            what is drawn
                 │
                 ├─▶ session ─▶ state              what is known, from snapshot and notices
                 ├─▶ selection                     where the person is
                 └─▶ requests                      what the person asked for
"""
