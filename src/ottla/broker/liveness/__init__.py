"""Everything in a broker that decides which brokers are alive; see docs/internals/liveness.md.

`lifecycle` registers and sends heartbeats, `own_session` says if the controller may have fenced
this broker, `death_watch` probes brokers for the active controller, `peer_liveness` has the brokers
whose connection closed. Pure parts are in their packages: the controller's sessions in
`metadata/decisions/sessions.py`, the leader's majority in `quorum/leadership.py`, the age of the
image in `quorum/freshness.py`.
"""
