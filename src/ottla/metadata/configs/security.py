"""Broker configs of authentication, authorisation and policies.

None is built yet. A security setting must never be silently ignored, so each is refused.
"""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
alter.config.policy.class.name class null any low not-built read-only
    A class that may refuse changes of configs.
authorizer.class.name string "" any low not-built read-only
    What decides whether a principal may do something; empty allows everything.
config.providers list "" any low not-built cluster-wide
    Sources that values in this file may be read from.
connections.max.reauth.ms long 0 any medium not-built read-only
    How long an authentication is good for.
create.topic.policy.class.name class null any low not-built read-only
    A class that may refuse new topics.
delegation.token.expiry.check.interval.ms long 3600000 >=1 low not-built read-only
    How often expired delegation tokens are looked for.
delegation.token.expiry.time.ms long 86400000 >=1 medium not-built read-only
    How long a delegation token is good for without renewal.
delegation.token.max.lifetime.ms long 604800000 >=1 medium not-built read-only
    How long a delegation token can be renewed.
delegation.token.secret.key password null any medium not-built read-only
    The secret delegation tokens are signed with.
principal.builder.class class
    org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder any medium not-built
    per-broker
    What turns a connection into a principal.
sasl.client.callback.handler.class class null any medium not-built read-only
    Gives a SASL client its credentials.
sasl.enabled.mechanisms list GSSAPI any medium not-built per-broker
    The SASL mechanisms that are offered.
sasl.jaas.config password null any medium not-built per-broker
    Login settings of a listener, in the form of JAAS.
sasl.kerberos.kinit.cmd string /usr/bin/kinit any medium not-built per-broker
    The path of the kinit command.
sasl.kerberos.min.time.before.relogin long 60000 any medium not-built per-broker
    The shortest time between two Kerberos logins.
sasl.kerberos.principal.to.local.rules list DEFAULT any medium not-built per-broker
    Rules that turn Kerberos principals into short names.
sasl.kerberos.service.name string null any medium not-built per-broker
    The Kerberos name of the brokers.
sasl.kerberos.ticket.renew.jitter double 0.05 any medium not-built per-broker
    The share of random delay in the renewal of tickets.
sasl.kerberos.ticket.renew.window.factor double 0.8 any medium not-built per-broker
    The share of a ticket's life after which it is renewed.
sasl.login.callback.handler.class class null any medium not-built read-only
    Gives a login its credentials.
sasl.login.class class null any medium not-built read-only
    A class that performs logins.
sasl.login.connect.timeout.ms int null any low not-built read-only
    How long a connection to a token server may take to open.
sasl.login.read.timeout.ms int null any low not-built read-only
    How long a token server may take to answer.
sasl.login.refresh.buffer.seconds short 300 any medium not-built per-broker
    Seconds before expiry by which a credential is renewed.
sasl.login.refresh.min.period.seconds short 60 any medium not-built per-broker
    The shortest time between two renewals of a credential.
sasl.login.refresh.window.factor double 0.8 any medium not-built per-broker
    The share of a credential's life after which it is renewed.
sasl.login.refresh.window.jitter double 0.05 any medium not-built per-broker
    The share of random delay in the renewal of credentials.
sasl.login.retry.backoff.max.ms long 10000 any low not-built read-only
    The longest wait between two tries of a login.
sasl.login.retry.backoff.ms long 100 any low not-built read-only
    The first wait between two tries of a login.
sasl.mechanism.controller.protocol string GSSAPI any high not-built read-only
    The SASL mechanism between controllers.
sasl.mechanism.inter.broker.protocol string GSSAPI any medium not-built per-broker
    The SASL mechanism between brokers.
sasl.oauthbearer.assertion.algorithm string RS256 i{ES256,RS256} medium not-built read-only
    The algorithm a client's assertion is signed with.
sasl.oauthbearer.assertion.claim.aud string null any medium not-built read-only
    The audience an assertion names.
sasl.oauthbearer.assertion.claim.exp.seconds int 300 0..86400 low not-built read-only
    How long an assertion is good for.
sasl.oauthbearer.assertion.claim.iss string null any medium not-built read-only
    The issuer an assertion names.
sasl.oauthbearer.assertion.claim.jti.include boolean false any medium not-built read-only
    Gives each assertion an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds int 60 0..3600 low not-built read-only
    How far back an assertion's validity begins.
sasl.oauthbearer.assertion.claim.sub string null any medium not-built read-only
    The subject an assertion names.
sasl.oauthbearer.assertion.file string null any medium not-built read-only
    A file that holds a ready assertion.
sasl.oauthbearer.assertion.private.key.file string null any medium not-built read-only
    The file of the key that assertions are signed with.
sasl.oauthbearer.assertion.private.key.passphrase password null any medium not-built read-only
    The passphrase of the key that assertions are signed with.
sasl.oauthbearer.assertion.template.file string null any medium not-built read-only
    A file with further claims for assertions.
sasl.oauthbearer.client.credentials.client.id string null any medium not-built read-only
    The client id sent to a token server.
sasl.oauthbearer.client.credentials.client.secret password null any medium not-built read-only
    The client secret sent to a token server.
sasl.oauthbearer.clock.skew.seconds int 30 any low not-built read-only
    How far the clocks of broker and token server may differ.
sasl.oauthbearer.expected.audience list "" any high not-built read-only
    The audiences of which a token must name one.
sasl.oauthbearer.expected.issuer string null any high not-built read-only
    The issuer a token must name.
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000 any low not-built read-only
    How often the keys of the token server are fetched again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000 any low not-built read-only
    The longest wait between two tries to fetch keys.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100 any low not-built read-only
    The first wait between two tries to fetch keys.
sasl.oauthbearer.jwks.endpoint.url string null any medium not-built read-only
    Where the keys of the token server are found.
sasl.oauthbearer.jwt.retriever.class class
    org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever any medium not-built read-only
    What fetches tokens.
sasl.oauthbearer.jwt.validator.class class
    org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator any medium not-built read-only
    What checks tokens.
sasl.oauthbearer.scope string null any medium not-built read-only
    The scope asked of a token server.
sasl.oauthbearer.scope.claim.name string scope any low not-built read-only
    The claim that holds a token's scope.
sasl.oauthbearer.sub.claim.name string sub any low not-built read-only
    The claim that holds a token's subject.
sasl.oauthbearer.token.endpoint.url string null any medium not-built read-only
    Where the token server is found.
sasl.server.callback.handler.class class null any medium not-built read-only
    Checks the credentials that clients present.
sasl.server.max.receive.size int 524288 any medium not-built read-only
    The largest message accepted before a client is authenticated.
security.providers string null any low not-built read-only
    Providers of security algorithms.
""")
