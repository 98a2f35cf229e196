/* Load through librdkafka, as most users' clients send it.
 *
 *   rdkafka produce     keep the queue full for -t seconds or -n messages
 *   rdkafka consume     read -n messages of all partitions from the beginning
 *   rdkafka roundtrip   one message at a time: produce it and wait for its delivery report
 *   rdkafka endtoend    a producer paced at -R messages a second, and a consumer at the tail
 *   rdkafka gap         an idempotent producer at full speed until its input ends; tells every tenth
 *                       of a second how much is acknowledged, and at last the longest time without
 *                       an acknowledgement since the last line of its input
 * The report is one line of JSON (measure.h).
 */
#define _GNU_SOURCE
#include "librdkafka.h"
#include "measure.h"

#include <getopt.h>
#include <pthread.h>

enum { WARM_UP = 200, BATCH = 10000, SAMPLED = 16 };

static const char *bootstrap = "127.0.0.1:9092", *topic = "bench", *acks = "1",
                  *broker_pids = "";
static size_t value_bytes = 100;
static long count_max, acknowledged, failed;
static int partitions = 1;
static double seconds_max = 5, rate = 1000;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(2);
}

static void on_delivery(client *c, const message *m, void *opaque) {
    (void)c, (void)opaque;
    if (m->err) {
        failed++;
        fail("produce", rd_kafka_err2name(m->err));
    }
    acknowledged++;
    if (m->opaque) {
        double sent_at;
        memcpy(&sent_at, &m->opaque, sizeof sent_at);
        note_latency(now_s() - sent_at);
    }
}

static void on_error(client *c, int error, const char *why, void *opaque) {
    (void)c, (void)opaque;
    fprintf(stderr, "%s: %s\n", rd_kafka_err2name(error), why);
}

static void set(conf *c, const char *name, const char *value) {
    char error[512];
    if (rd_kafka_conf_set(c, name, value, error, sizeof error) != CONF_OK)
        fail(name, error);
}

static client *make(int type, int is_prompt) {
    char error[512];
    conf *c = rd_kafka_conf_new();
    set(c, "bootstrap.servers", bootstrap);
    rd_kafka_conf_set_error_cb(c, on_error);
    if (type == PRODUCER) {
        set(c, "queue.buffering.max.messages", "2000000");
        set(c, "queue.buffering.max.kbytes", "1048576");
        set(c, "linger.ms", is_prompt ? "0" : "5");
        set(c, "acks", acks);
        rd_kafka_conf_set_dr_msg_cb(c, on_delivery);
    } else {
        set(c, "group.id", "benchmark"); /* Never joined: partitions are assigned. */
        set(c, "enable.auto.commit", "false");
        set(c, "enable.auto.offset.store", "false");
        set(c, "auto.offset.reset", "earliest");
        set(c, "enable.partition.eof", "true");
        set(c, "queued.min.messages", "200000");
    }
    client *made = rd_kafka_new(type, c, error, sizeof error);
    if (!made)
        fail("client", error);
    return made;
}

static char *value_of(size_t size) {
    char *value = malloc(size);
    for (size_t i = 0; i < size; i++)
        value[i] = (char)('a' + i % 26);
    return value;
}

static void send_one(client *c, client_topic *t, long n, char *value, int is_timed) {
    void *opaque = NULL;
    double sent_at = now_s();
    if (is_timed)
        memcpy(&opaque, &sent_at, sizeof opaque);
    int to = (int)(n % partitions);
    while (rd_kafka_produce(t, to, COPY, value, value_bytes, NULL, 0, opaque)) {
        if (rd_kafka_last_error() != QUEUE_FULL)
            fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(c, 5);
    }
}

/* One message to each partition, so that connections and metadata are there. */
static void warm_up(client *c, client_topic *t, char *value, int count) {
    for (int i = 0; i < count; i++) {
        send_one(c, t, i, value, 0);
        while (rd_kafka_outq_len(c))
            rd_kafka_poll(c, 100);
    }
    acknowledged = 0;
    latency_count = 0;
}

static void report(double started, double own, double broker, long records) {
    double seconds = now_s() - started, bytes = (double)records * (double)value_bytes;
    print_report(seconds, (double)records, (double)records, bytes, own_cpu_s() - own,
                 processes_cpu_s(broker_pids) - broker);
}

static void produce(int is_one_at_a_time) {
    client *c = make(PRODUCER, is_one_at_a_time);
    client_topic *t = rd_kafka_topic_new(c, topic, NULL);
    char *value = value_of(value_bytes);
    warm_up(c, t, value, is_one_at_a_time ? WARM_UP : partitions);
    double own = own_cpu_s(), broker = processes_cpu_s(broker_pids), started = now_s();
    long sent = 0;
    while ((!count_max || sent < count_max) && now_s() - started < seconds_max) {
        send_one(c, t, sent, value, is_one_at_a_time || sent % SAMPLED == 0);
        sent++;
        if (is_one_at_a_time)
            while (acknowledged < sent)
                rd_kafka_poll(c, 100);
        else if (sent % 1024 == 0)
            rd_kafka_poll(c, 0);
    }
    rd_kafka_flush(c, 60000);
    if (acknowledged != sent)
        fail("produce", "not everything was acknowledged");
    report(started, own, broker, acknowledged);
}

static void assign(client *c, int64_t from) {
    partition_list *list = rd_kafka_topic_partition_list_new(partitions);
    for (int i = 0; i < partitions; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = from;
    int error = rd_kafka_assign(c, list);
    if (error)
        fail("assign", rd_kafka_err2str(error));
}

static void consume(void) {
    client *c = make(CONSUMER, 0);
    queue *q = rd_kafka_queue_get_consumer(c);
    message **batch = malloc(BATCH * sizeof *batch);
    int64_t *next = calloc((size_t)partitions, sizeof *next);
    long n = 0;
    double own = own_cpu_s(), broker = processes_cpu_s(broker_pids), started = now_s();
    double gives_up_at = started + 60;
    assign(c, FROM_BEGINNING);
    while (n < count_max && now_s() < gives_up_at) {
        if (!n)
            started = now_s(); /* The time of connecting is not the consumption's. */
        ssize_t count = rd_kafka_consume_batch_queue(q, 100, batch, BATCH);
        for (ssize_t i = 0; i < count; i++) {
            message *m = batch[i];
            if (!m->err) {
                if (m->offset != next[m->partition]++)
                    fail("consume", "records out of order or missing");
                n++;
            } else if (m->err != PARTITION_EOF) {
                fail("consume", rd_kafka_err2name(m->err));
            }
            rd_kafka_message_destroy(m);
        }
    }
    if (n < count_max)
        fail("consume", "not all records came within a minute");
    report(started, own, broker, n);
}

static volatile int is_ready, is_over;
static volatile long received;

static void *read_tail(void *unused) {
    (void)unused;
    client *c = make(CONSUMER, 1);
    int ends = 0;
    assign(c, FROM_END);
    while (!is_over) {
        message *m = rd_kafka_consumer_poll(c, 100);
        if (!m)
            continue;
        if (m->err == PARTITION_EOF) {
            is_ready |= ++ends >= partitions;
        } else if (!m->err && m->len >= sizeof(double)) {
            double sent_at;
            memcpy(&sent_at, m->payload, sizeof sent_at);
            if (sent_at > 0) { /* Zero while the producer warms up. */
                note_latency(now_s() - sent_at);
                received++;
            }
        }
        rd_kafka_message_destroy(m);
    }
    return NULL;
}

static void end_to_end(void) {
    pthread_t reader;
    pthread_create(&reader, NULL, read_tail, NULL);
    client *c = make(PRODUCER, 1);
    client_topic *t = rd_kafka_topic_new(c, topic, NULL);
    char *value = value_of(value_bytes < sizeof(double) ? sizeof(double) : value_bytes);
    for (int i = 0; i < 100 && !is_ready; i++)
        usleep(100000);
    memset(value, 0, sizeof(double));
    warm_up(c, t, value, WARM_UP);
    long sent = 0;
    double own = own_cpu_s(), broker = processes_cpu_s(broker_pids), started = now_s();
    while (now_s() - started < seconds_max) {
        double early = started + (double)sent / rate - now_s();
        if (early > 3e-4)
            usleep((useconds_t)((early - 2e-4) * 1e6));
        if (early > 0)
            continue;
        double sent_at = now_s();
        memcpy(value, &sent_at, sizeof sent_at);
        send_one(c, t, sent++, value, 0);
        rd_kafka_poll(c, 0);
    }
    rd_kafka_flush(c, 10000);
    for (int i = 0; i < 50 && received < sent; i++)
        usleep(100000);
    is_over = 1;
    pthread_join(reader, NULL);
    if (received < sent)
        fail("endtoend", "not everything arrived");
    report(started, own, broker, received);
}

static volatile double last_at, longest;

static void note_gap(client *c, const message *m, void *opaque) {
    on_delivery(c, m, opaque);
    double now = now_s();
    if (now - last_at > longest)
        longest = now - last_at;
    last_at = now;
}

static void *read_input(void *unused) {
    (void)unused;
    for (int c; (c = getchar()) != EOF;)
        longest = 0;
    is_over = 1;
    return NULL;
}

static void gap(void) {
    char error[512];
    conf *settings = rd_kafka_conf_new();
    set(settings, "bootstrap.servers", bootstrap);
    set(settings, "enable.idempotence", "true");
    rd_kafka_conf_set_error_cb(settings, on_error);
    rd_kafka_conf_set_dr_msg_cb(settings, note_gap);
    client *c = rd_kafka_new(PRODUCER, settings, error, sizeof error);
    if (!c)
        fail("client", error);
    client_topic *t = rd_kafka_topic_new(c, topic, NULL);
    char *value = value_of(value_bytes);
    pthread_t reader;
    pthread_create(&reader, NULL, read_input, NULL);
    double told_at = last_at = now_s();
    for (long sent = 0; !is_over;) {
        if (!rd_kafka_produce(t, (int)(sent % partitions), COPY, value, value_bytes, NULL, 0, NULL))
            sent++;
        else if (rd_kafka_last_error() != QUEUE_FULL)
            fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
        else
            rd_kafka_poll(c, 5);
        if (sent % 1024 == 0)
            rd_kafka_poll(c, 0);
        if (now_s() - told_at >= 0.1) {
            told_at = now_s();
            printf("%ld\n", acknowledged);
            fflush(stdout);
        }
    }
    double found = longest;
    rd_kafka_flush(c, 60000);
    printf("{\"gap_s\": %.4f, \"records\": %ld}\n", found, acknowledged);
}

static void options(int count, char **values) {
    optind = 2;
    for (int o; (o = getopt(count, values, "b:T:P:s:n:t:R:a:i:")) != -1;) {
        switch (o) {
        case 'b': bootstrap = optarg; break;
        case 'T': topic = optarg; break;
        case 'P': partitions = atoi(optarg); break;
        case 's': value_bytes = (size_t)atol(optarg); break;
        case 'n': count_max = atol(optarg); break;
        case 't': seconds_max = atof(optarg); break;
        case 'R': rate = atof(optarg); break;
        case 'a': acks = optarg; break;
        case 'i': broker_pids = optarg; break;
        default: exit(1);
        }
    }
}

int main(int count, char **values) {
    const char *what = count > 1 ? values[1] : "";
    options(count, values);
    latencies_us = malloc(LATENCIES_MAX * sizeof *latencies_us);
    if (!strcmp(what, "produce"))
        produce(0);
    else if (!strcmp(what, "roundtrip"))
        produce(1);
    else if (!strcmp(what, "consume"))
        consume();
    else if (!strcmp(what, "endtoend"))
        end_to_end();
    else if (!strcmp(what, "gap"))
        gap();
    else
        fail("usage", "rdkafka produce|consume|roundtrip|endtoend|gap [options]");
    fflush(stdout);
    _exit(0); /* Nothing is owed: a client's orderly end takes seconds and is not measured. */
}
