"""Broker configs of TLS.

None is built yet. A security setting must never be silently ignored, so each is refused.
"""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
ssl.allow.dn.changes boolean false any low not-built read-only
    Lets a renewed certificate bear another name.
ssl.allow.san.changes boolean false any low not-built read-only
    Lets a renewed certificate bear other alternative names.
ssl.cipher.suites list "" any medium not-built per-broker
    The cipher suites that are offered.
ssl.client.auth string none {required,requested,none} medium not-built per-broker
    Whether clients must present a certificate.
ssl.enabled.protocols list TLSv1.2,TLSv1.3 any medium not-built per-broker
    The TLS versions that are offered.
ssl.endpoint.identification.algorithm string https any low not-built per-broker
    How a server's name is checked against its certificate.
ssl.engine.factory.class class null any low not-built per-broker
    A class that builds TLS engines.
ssl.key.password password null any medium not-built per-broker
    The password of the private key.
ssl.keymanager.algorithm string SunX509 any medium not-built per-broker
    The algorithm of the key manager.
ssl.keystore.certificate.chain password null any medium not-built per-broker
    The certificate chain in PEM form.
ssl.keystore.key password null any medium not-built per-broker
    The private key in PEM form.
ssl.keystore.location string null any medium not-built per-broker
    The file that holds the key and its certificates.
ssl.keystore.password password null any medium not-built per-broker
    The password of the key store.
ssl.keystore.type string JKS any medium not-built per-broker
    The format of the key store.
ssl.principal.mapping.rules string DEFAULT any low not-built read-only
    Rules that turn a certificate's name into a principal.
ssl.protocol string TLSv1.3 any medium not-built per-broker
    The TLS version a context is made with.
ssl.provider string null any medium not-built per-broker
    The security provider that serves TLS.
ssl.secure.random.implementation string null any low not-built per-broker
    The source of random numbers for TLS.
ssl.trustmanager.algorithm string PKIX any medium not-built per-broker
    The algorithm of the trust manager.
ssl.truststore.certificates password null any medium not-built per-broker
    The trusted certificates in PEM form.
ssl.truststore.location string null any medium not-built per-broker
    The file that holds the trusted certificates.
ssl.truststore.password password null any medium not-built per-broker
    The password of the trust store.
ssl.truststore.type string JKS any medium not-built per-broker
    The format of the trust store.
""")
