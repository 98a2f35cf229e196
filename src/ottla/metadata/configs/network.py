"""Broker configs of listeners, connections and requests."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
advertised.listeners list null any high served read-only
    The addresses published to clients, where they differ from listeners.
connections.max.idle.ms long 600000 any medium served read-only
    How long a connection may stay silent before it is closed.
connection.failed.authentication.delay.ms int 100 >=0 low not-built read-only
    How long the answer to a failed authentication is held back.
early.start.listeners list null any high irrelevant read-only
    Listeners that open before the broker is fully up.
fetch.max.bytes int 57671680 >=1024 medium served read-only
    The most bytes one fetch answer carries, whatever the client asked for.
inter.broker.listener.name string null any medium served read-only
    The listener other brokers connect to.
listener.security.protocol.map string
    SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT any low served
    per-broker
    The security protocol of each listener name.
listeners list PLAINTEXT://:9092 any high served per-broker
    The addresses the broker listens on, each as NAME://host:port.
max.connection.creation.rate int 2147483647 >=0 medium not-built cluster-wide
    New connections per second that the broker accepts.
max.connections int 2147483647 >=0 medium served cluster-wide
    Open connections the broker accepts.
max.connections.per.ip int 2147483647 >=0 medium served cluster-wide
    Open connections the broker accepts from one address.
max.connections.per.ip.overrides string "" any medium served cluster-wide
    Limits for single addresses, as host:limit pairs.
num.io.threads int 8 >=1 high irrelevant cluster-wide
    Threads that serve requests; here one loop serves them all.
num.network.threads int 3 >=1 high irrelevant cluster-wide
    Threads that read and write sockets; here one loop serves them all.
background.threads int 10 >=1 high irrelevant cluster-wide
    Threads for background work; here a small pool is sized by itself.
queued.max.request.bytes long 134217728 any medium served read-only
    Memory for requests that are being received or wait to be served; -1 is no limit.
queued.max.requests int 500 >=1 high irrelevant read-only
    Requests that may wait for a thread; here memory is the bound, not a count.
request.timeout.ms int 30000 any high irrelevant read-only
    How long this broker waits for the answer of another one.
security.inter.broker.protocol string PLAINTEXT {PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL} medium
    served read-only
    The protocol between brokers, when inter.broker.listener.name is not set.
server.max.startup.time.ms long 9223372036854775807 >=0 medium irrelevant read-only internal
    How long start may take before the process gives up.
socket.connection.setup.timeout.max.ms long 30000 any medium irrelevant read-only
    The longest wait for a connection to another broker to open.
socket.connection.setup.timeout.ms long 10000 any medium irrelevant read-only
    The first wait for a connection to another broker to open.
socket.listen.backlog.size int 50 >=1 medium served read-only
    Connections the system queues before the broker accepts them.
socket.receive.buffer.bytes int -1 any high served read-only
    The receive buffer of a socket; -1 leaves it to the system.
socket.request.max.bytes int 104857600 >=1 high served read-only
    The largest request the broker accepts.
socket.send.buffer.bytes int -1 any high served read-only
    The send buffer of a socket; -1 leaves it to the system.
""")
